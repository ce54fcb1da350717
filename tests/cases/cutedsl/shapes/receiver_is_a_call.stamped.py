from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute
from cutlass import pipeline


@cute.jit
def step(self, barriers, i, use):
    _as.enter(1, later=True); _as.see(1, pipeline.NamedBarrier(barrier_id=1, num_threads=128), "receiver", 'pipeline.NamedBarrier(barrier_id=1, num_threads=128)').arrive_and_wait(); _as.exit(1)
    _as.open(2, later=True); _as.see(2, self.named(i), "receiver", 'self.named(i)').arrive(); _as.signal(2)
    use(_as.around(3, _as.enter(3, index=0, later=True), _as.see(3, barriers[i + 1], "receiver", 'barriers[i + 1]').wait(0, 1)))
    _as.enter(4, later=True); token = _as.see(4, use(i), "receiver", 'use(i)').wait_and_advance(); _as.exit(4)
