from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def wait_at_once(bar, phase):
    _as.enter(1, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(1)

@cute.jit
def wait_after_a_comment(bar, phase):
    # spin
    _as.enter(2, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(2); return phase
