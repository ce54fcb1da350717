import cutlass.cute as cute


@cute.jit
def step(bar, phase, n):
    for k in range(n):
        if k:
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
        else:
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
        # after the branches
    x = 1
    if n:
        x = 2
        while not cute.arch.mbarrier_try_wait(bar, phase):
            pass  # spin

    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
