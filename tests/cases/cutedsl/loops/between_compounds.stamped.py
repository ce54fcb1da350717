from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(bar, other, phase):
    if phase:
        x = 1
    _as.enter(1, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(1)
    _as.enter(2, pointer=other, text='other')
    while not cute.arch.mbarrier_try_wait(other, phase):
        pass
    _as.exit(2); _as.enter(3, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(3)
    if phase:
        x = 2
