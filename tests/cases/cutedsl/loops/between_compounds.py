import cutlass.cute as cute


@cute.jit
def step(bar, other, phase):
    if phase:
        x = 1
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    while not cute.arch.mbarrier_try_wait(other, phase):
        pass

    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    if phase:
        x = 2
