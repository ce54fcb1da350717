from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", forms={1: 'enter', 2: 'carried', 3: 'before'}); import cutlass.cute as cute


@cute.jit
def step(consumer, order, bar, phase):
    _as.enter(1, pointer=bar, text='bar')
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    _as.exit(1); _as.enter(2, consumer); handle = consumer.wait_and_advance(); _as.exit(2)
    _as.open(3, handle); handle.release(); _as.signal(3)
    return _as.around(4, _as.open(4, order), order.arrive())
