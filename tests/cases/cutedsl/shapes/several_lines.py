import cutlass.cute as cute


@cute.jit
def step(pipe, state):
    pipe.consumer_wait(
        state,  # the stage
        pipe.peek,
    )  # done
    handle = (
        pipe.wait_and_advance()
    )
    (pipe.consumer_release(state))
