from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(pipe, state):
    _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1); _as.open(2, pipe, state=state); pipe.consumer_release(state); _as.signal(2)
    x = 1; _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3); y = 2;
    _as.open(4, pipe, state=state); pipe.consumer_release(state); _as.signal(4) ; state.advance()  # both
