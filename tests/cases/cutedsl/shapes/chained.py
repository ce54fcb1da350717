import cutlass.cute as cute


@cute.jit
def step(producer, consumer, use):
    producer.acquire_and_advance().commit()
    handle = producer.acquire_and_advance().commit()
    use(consumer.wait_and_advance().release())
