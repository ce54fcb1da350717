from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(self, a, b, flag, pipes, i, state):
    _as.enter(1, state=state, later=True); (_as.see(1, a if flag else b, "receiver", 'a if flag else b')).consumer_wait(state); _as.exit(1)
    _as.enter(2, state=state, later=True); _as.see(2, pipes[-1], "receiver", 'pipes[-1]').consumer_wait(state); _as.exit(2)
    _as.enter(3, state=state, later=True); _as.see(3, pipes[int(i)], "receiver", 'pipes[int(i)]').consumer_wait(state); _as.exit(3)
    use(_as.around(4, _as.enter(4, later=True), (_as.see(4, a or b, "receiver", 'a or b')).wait_and_advance()))
    _as.open(5, self.handle); self.handle.release(); _as.signal(5)
    _as.open(6, state=state, later=True); _as.see(6, getattr(a, "pipe"), "receiver", 'getattr(a, "pipe")').consumer_release(state); _as.signal(6)
