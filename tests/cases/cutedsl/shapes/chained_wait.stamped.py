from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(producer):
    _as.around(2, None, _as.see(2, _as.around(1, _as.enter(1, producer), producer.acquire_and_advance()), "receiver", 'producer.acquire_and_advance()', waits=True).wait())
