from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(pipe, state, flag, bar):
    if flag: _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1)
    else: _as.open(2, pipe, state=state); pipe.consumer_release(state); _as.signal(2)
    for k in range(2): _as.enter(3, pipe, state=state); pipe.producer_acquire(state); _as.exit(3); _as.open(4, pipe, state=state); pipe.producer_commit(state); _as.signal(4)
    with cute.arch.elect_one(): _as.open(5, pointer=bar, text='bar'); cute.arch.mbarrier_arrive(bar); _as.signal(5)  # one thread
    while flag: _as.enter(6, pipe, state=state); pipe.consumer_wait(state); _as.exit(6);
