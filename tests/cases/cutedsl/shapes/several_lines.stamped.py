from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(pipe, state):
    _as.enter(1, pipe, state=state); pipe.consumer_wait(
        state,  # the stage
        pipe.peek,
    ); _as.exit(1)  # done
    _as.enter(2, pipe); handle = (
        pipe.wait_and_advance()
    ); _as.exit(2)
    _as.open(3, pipe, state=state); (pipe.consumer_release(state)); _as.signal(3)
