import cutlass.cute as cute


@cute.jit
def step(use, a, b, pipe, state):
    use(a.wait_and_advance(), b.wait_and_advance())
    result = use(x=a.wait_and_advance().index)
    pipe.consumer_wait(state, pipe.consumer_try_wait(state))
    pipe.consumer_wait(a.wait_and_advance())
    print(use(use(a.wait_and_advance())))
