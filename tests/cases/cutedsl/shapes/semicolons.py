import cutlass.cute as cute


@cute.jit
def step(pipe, state):
    pipe.consumer_wait(state); pipe.consumer_release(state)
    x = 1; pipe.consumer_wait(state); y = 2;
    pipe.consumer_release(state) ; state.advance()  # both
