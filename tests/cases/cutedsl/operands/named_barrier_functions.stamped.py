from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2}); import cutlass.cute as cute
import cutlass.pipeline as pipeline


@cute.jit
def step(self, order):
    _as.enter(1, barrier_id=1, text='1'); pipeline.sync(barrier_id=1); _as.exit(1)
    _as.enter(2, later=True); pipeline.arrive_and_wait(
        barrier_id=_as.see(2, self.barrier_ids[0], "barrier_id", 'self.barrier_ids[0]'),
        num_threads=128,
    ); _as.exit(2)
    _as.open(3, barrier_id=2, text='2'); pipeline.arrive(barrier_id=2, num_threads=128); _as.signal(3)
    _as.open(4, order); order.arrive(); _as.signal(4)
