from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(bar, phase, n):
    for k in range(n):
        if k:
            _as.enter(1, pointer=bar, text='bar')
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
            _as.exit(1)
        else:
            _as.enter(2, pointer=bar, text='bar')
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
            _as.exit(2)
        # after the branches
    x = 1
    if n:
        x = 2; _as.enter(3, pointer=bar, text='bar')
        while not cute.arch.mbarrier_try_wait(bar, phase):
            pass  # spin
        _as.exit(3)
    _as.enter(4, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(4)
