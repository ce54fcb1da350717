import cutlass.cute as cute


@cute.jit
def step(consumer, pipe, state, n):
    while consumer.wait_and_advance().index < n:
        n -= 1
    if consumer.wait_and_advance().is_valid:
        n -= 1
    elif pipe.wait_and_advance():
        n -= 2
    while pipe.consumer_try_wait(state):
        n -= 1
    for k in consumer.wait_and_advance().items:
        n -= 1
    with consumer.wait_and_advance() as handle:
        n -= 1
    assert consumer.wait_and_advance()
    n += consumer.wait_and_advance().index
