import cutlass.cute as cute


@cute.jit
def step(consumer, order, bar, phase):
    while not cute.arch.mbarrier_try_wait(bar, phase):
        pass
    handle = consumer.wait_and_advance()
    handle.release()
    return order.arrive()
