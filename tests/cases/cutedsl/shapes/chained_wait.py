import cutlass.cute as cute


@cute.jit
def step(producer):
    producer.acquire_and_advance().wait()
