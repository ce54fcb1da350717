from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute


@cute.jit
def step(self, handle):
    _as.enter(1, later=True); _as.see(1, self.barrier, "receiver", 'self.barrier').arrive_and_wait(); _as.exit(1)
    _as.enter(2, index=0, later=True); _as.see(2, handle.barrier, "receiver", 'handle.barrier').wait(0, 1); _as.exit(2)
