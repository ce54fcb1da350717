from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {3}); import cutlass.cute as cute


@cute.jit
def step(bar, phase):
    phase = phase ^ 1; _as.enter(1, pointer=bar, text='bar')  # flip
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(1); x = 1
    y = 2; _as.enter(2, pointer=bar, text='bar');

    # a comment
    while not cute.arch.mbarrier_try_wait(bar, phase): pass
    _as.exit(2); _as.enter(3, text='CTA'); cute.arch.sync_threads(); _as.exit(3)
