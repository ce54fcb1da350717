from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(bar, phase):
    """Wait twice."""; _as.enter(1, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    # first is there
    _as.exit(1)
    _as.enter(2, pointer=bar, text='bar')
    # now the second
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
        # deeper comment
# shallow comment
    # last comment
    _as.exit(2)

x = 1
