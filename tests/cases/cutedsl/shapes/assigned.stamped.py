from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(consumer, producer, order):
    _as.enter(1, consumer); handle = consumer.wait_and_advance(); _as.exit(1)
    _as.enter(2, producer); first = second = producer.acquire_and_advance(); _as.exit(2)
    _as.enter(3, consumer); typed: object = consumer.wait_and_advance(); _as.exit(3)
    _as.open(4, order); state = order.arrive(); _as.signal(4)
    _as.open(5, handle); handle.release(); _as.signal(5)
    return state
