from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {2, 4}); import cutlass
import cutlass.cute as cute


class PipelineTmaAsync(cutlass.pipeline.PipelineTmaAsync):
    def consumer_wait_w_index_phase(self, index, phase, token=None):
        if_generate(token == 0, lambda: self.sync_object_full.wait(index, phase))

    @cute.jit
    def producer_acquire_w_index_phase(self, index, phase):
        self.sync_object_empty.wait(index, phase)
        self.sync_object_full.arrive(index, self.producer_mask)

    def load(self, state):
        _as.enter(1, self, state=state); self.producer_acquire(state); _as.exit(1)

    @staticmethod
    def create(n):
        _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2)


class NamedBarrier:
    def arrive_and_wait_w_index(self, index):
        cute.arch.barrier(barrier_id=self.barrier_id + index, number_of_threads=self.num_threads)


@cute.jit
def step(pipe, index, phase, nbar):
    _as.enter(3, pipe, index=index); pipe.consumer_wait_w_index_phase(index, phase); _as.exit(3)
    pipe.load(index)
    _as.enter(4, nbar, index=index); nbar.arrive_and_wait_w_index(index); _as.exit(4)
