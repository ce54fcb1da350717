from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute
import cutlass.experimental.primitives as prims


@cute.jit
def step(bar, bars, i, phase, pipe, state):
    _as.enter(1, pointer=bar, text='bar')
    while not prims.mbarrier_try_wait_parity(bar, phase):
        pass
    _as.exit(1); x = 1; _as.enter(2, pointer=bar, text='bar')
    while prims.mbarrier_test_wait(bar, phase) == 0:
        prims.nanosleep(20)
    _as.exit(2); x = 2; _as.enter(3, pipe, state=state)
    while not pipe.consumer_try_wait(state):
        ...
    _as.exit(3); x = 3; _as.enter(4, text='bars + i')
    while not (prims.mbarrier_try_wait(bars + i, phase)): pass
    _as.exit(4); x = 4
    while not prims.mbarrier_try_wait(bar, phase):
        x += 1
    x = 5
    while not prims.mbarrier_try_wait(bar, phase):
        pass
    else:
        x = 6
    while not prims.mbarrier_try_wait(bar, phase) and x:
        pass
