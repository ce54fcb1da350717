from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, tiles):
    for k in cutlass.range(4, unroll=1):
        _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1)
    else:
        _as.open(2, pipe, state=state); pipe.consumer_release(state); _as.signal(2)
    for k in cutlass.range_constexpr(4):
        for j in range(k):
            _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3)
    while tiles.is_valid:
        _as.enter(4, pipe, state=state); pipe.producer_acquire(state); _as.exit(4)
        tiles.advance()
    else:
        _as.enter(5, pipe, state=state); pipe.producer_tail(state); _as.exit(5)
    try:
        _as.enter(6, pipe, state=state); pipe.consumer_wait(state); _as.exit(6)
    except ValueError:
        _as.open(7, pipe, state=state); pipe.consumer_release(state); _as.signal(7)
    finally:
        _as.enter(8, text='warp'); cute.arch.sync_warp(); _as.exit(8)
    match tiles.kind:
        case 1 if _as.around(9, _as.enter(9, pipe), pipe.wait_and_advance()):
            _as.enter(10, pipe, state=state); pipe.consumer_wait(state); _as.exit(10)
        case _:
            _as.open(11, pipe, state=state); pipe.consumer_release(state); _as.signal(11)
