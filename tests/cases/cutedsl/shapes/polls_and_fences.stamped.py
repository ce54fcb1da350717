from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(pipe, state, consumer, producer, bar):
    token = pipe.consumer_try_wait(state)
    peek = producer.try_acquire()
    if consumer.try_wait():
        cute.arch.mbarrier_init_fence()
    ready = cute.arch.mbarrier_try_wait(bar, 0)
    _as.enter(1, pipe, state=state); pipe.consumer_wait(state, token); _as.exit(1)
