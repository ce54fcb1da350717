import cutlass.cute as cute


@cute.jit
def step(bar, phase):
    phase = phase ^ 1  # flip
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    x = 1
    y = 2;

    # a comment
    while not cute.arch.mbarrier_try_wait(bar, phase): pass
    cute.arch.sync_threads()
