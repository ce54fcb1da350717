import cutlass.cute as cute
import cutlass.pipeline as pipeline


@cute.jit
def step(self, order):
    pipeline.sync(barrier_id=1)
    pipeline.arrive_and_wait(
        barrier_id=self.barrier_ids[0],
        num_threads=128,
    )
    pipeline.arrive(barrier_id=2, num_threads=128)
    order.arrive()
