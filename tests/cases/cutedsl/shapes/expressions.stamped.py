from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, run, flag, pipes, order):
    run(lambda: _as.around(1, _as.enter(1, pipe, state=state), pipe.consumer_wait(state)))
    later = lambda s: _as.around(2, _as.open(2, pipe, state=s), pipe.consumer_release(s))
    handle = _as.around(3, _as.enter(3, pipe), pipe.wait_and_advance()) if flag else _as.around(4, _as.enter(4, order), order.wait_and_advance())
    handles = [_as.around(5, _as.enter(5, each), each.wait_and_advance()) for each in pipes]
    pair = (_as.around(6, _as.enter(6, pipe), pipe.wait_and_advance()), _as.around(7, _as.enter(7, order), order.wait_and_advance()))
    handles[0], handles[1] = _as.around(8, _as.enter(8, pipe), pipe.wait_and_advance()), _as.around(9, _as.enter(9, order), order.wait_and_advance())
    ready = _as.around(10, _as.enter(10, pipe), pipe.wait_and_advance()) and not _as.around(11, _as.enter(11, order), order.wait_and_advance())
    del handles[_as.around(12, _as.enter(12, pipe), pipe.wait_and_advance()).index]
    return _as.around(13, _as.enter(13, pipe), pipe.wait_and_advance())
