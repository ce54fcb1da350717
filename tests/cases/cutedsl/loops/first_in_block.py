import cutlass.cute as cute


@cute.jit
def wait_at_once(bar, phase):
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass


@cute.jit
def wait_after_a_comment(bar, phase):
    # spin

    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    return phase
