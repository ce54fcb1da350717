import cutlass.cute as cute
from cutlass import pipeline


@cute.jit
def step(self, barriers, i, use):
    pipeline.NamedBarrier(barrier_id=1, num_threads=128).arrive_and_wait()
    self.named(i).arrive()
    use(barriers[i + 1].wait(0, 1))
    token = use(i).wait_and_advance()
