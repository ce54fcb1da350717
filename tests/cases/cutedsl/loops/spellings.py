import cutlass.cute as cute
import cutlass.experimental.primitives as prims


@cute.jit
def step(bar, bars, i, phase, pipe, state):
    while not prims.mbarrier_try_wait_parity(bar, phase):
        pass
    x = 1
    while prims.mbarrier_test_wait(bar, phase) == 0:
        prims.nanosleep(20)
    x = 2
    while not pipe.consumer_try_wait(state):
        ...
    x = 3
    while not (prims.mbarrier_try_wait(bars + i, phase)): pass
    x = 4
    while not prims.mbarrier_try_wait(bar, phase):
        x += 1
    x = 5
    while not prims.mbarrier_try_wait(bar, phase):
        pass
    else:
        x = 6
    while not prims.mbarrier_try_wait(bar, phase) and x:
        pass
