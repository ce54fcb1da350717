import cutlass.cute as cute


@cute.jit
def step(pipe, state, flag, bar):
    if flag: pipe.consumer_wait(state)
    else: pipe.consumer_release(state)
    for k in range(2): pipe.producer_acquire(state); pipe.producer_commit(state)
    with cute.arch.elect_one(): cute.arch.mbarrier_arrive(bar)  # one thread
    while flag: pipe.consumer_wait(state);
