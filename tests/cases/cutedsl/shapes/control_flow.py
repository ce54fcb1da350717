import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, tiles):
    for k in cutlass.range(4, unroll=1):
        pipe.consumer_wait(state)
    else:
        pipe.consumer_release(state)
    for k in cutlass.range_constexpr(4):
        for j in range(k):
            pipe.consumer_wait(state)
    while tiles.is_valid:
        pipe.producer_acquire(state)
        tiles.advance()
    else:
        pipe.producer_tail(state)
    try:
        pipe.consumer_wait(state)
    except ValueError:
        pipe.consumer_release(state)
    finally:
        cute.arch.sync_warp()
    match tiles.kind:
        case 1 if pipe.wait_and_advance():
            pipe.consumer_wait(state)
        case _:
            pipe.consumer_release(state)
