from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(producer, consumer):
    _as.enter(1, producer); producer.acquire(); _as.exit(1)
    _as.open(2, producer); producer.commit(); _as.signal(2)
    _as.enter(3, producer); producer.tail(); _as.exit(3)
    _as.enter(4, consumer); consumer.wait(); _as.exit(4)
    _as.open(5, consumer); consumer.release(); _as.signal(5)
