from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(pipe, state, bar):
    pipe.consumer_wait(state)  # autostamp: off
    pipe.consumer_release(
        state,
    )  # autostamp: off
    x = 1
    while not cute.arch.mbarrier_try_wait(bar, 0):  # autostamp:off
        pass
    _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1)  # autostamp: offset is no directive


cute.arch.sync_threads()
HANDLE = cute.arch.cluster_wait()
