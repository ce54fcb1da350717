from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(use, a, b, pipe, state):
    use(_as.around(1, _as.enter(1, a), a.wait_and_advance()), _as.around(2, _as.enter(2, b), b.wait_and_advance()))
    result = use(x=_as.around(3, _as.enter(3, a), a.wait_and_advance()).index)
    _as.enter(4, pipe, state=state); pipe.consumer_wait(state, pipe.consumer_try_wait(state)); _as.exit(4)
    _as.enter(5, pipe, later=True); pipe.consumer_wait(_as.see(5, _as.around(6, _as.enter(6, a), a.wait_and_advance()), "state")); _as.exit(5)
    print(use(use(_as.around(7, _as.enter(7, a), a.wait_and_advance()))))
