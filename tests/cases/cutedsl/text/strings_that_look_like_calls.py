import cutlass.cute as cute


@cute.jit
def step(pipe, state):
    """Calls pipe.consumer_wait(state)."""
    # pipe.consumer_wait(state)
    print("pipe.consumer_wait(state)")
    pipe.consumer_wait(state)  # pipe.consumer_release(state)
    consumer_wait = 1
    return {"wait": consumer_wait, "release": pipe.release}
