import cutlass.cute as cute


@cute.jit
def step(consumer, producer, order):
    handle = consumer.wait_and_advance()
    first = second = producer.acquire_and_advance()
    typed: object = consumer.wait_and_advance()
    state = order.arrive()
    handle.release()
    return state
