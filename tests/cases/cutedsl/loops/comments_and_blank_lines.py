import cutlass.cute as cute


@cute.jit
def step(bar, phase):
    """Wait twice."""
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    # first is there


    # now the second
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
        # deeper comment
# shallow comment
    # last comment


x = 1
