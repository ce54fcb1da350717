from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(producer, consumer, use):
    _as.around(2, None, _as.see(2, _as.around(1, _as.enter(1, producer), producer.acquire_and_advance()), "receiver", 'producer.acquire_and_advance()').commit())
    handle = _as.around(4, None, _as.see(4, _as.around(3, _as.enter(3, producer), producer.acquire_and_advance()), "receiver", 'producer.acquire_and_advance()').commit())
    use(_as.around(6, None, _as.see(6, _as.around(5, _as.enter(5, consumer), consumer.wait_and_advance()), "receiver", 'consumer.wait_and_advance()').release()))
