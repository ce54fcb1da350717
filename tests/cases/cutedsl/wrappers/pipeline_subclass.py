import cutlass
import cutlass.cute as cute


class PipelineTmaAsync(cutlass.pipeline.PipelineTmaAsync):
    def consumer_wait_w_index_phase(self, index, phase, token=None):
        if_generate(token == 0, lambda: self.sync_object_full.wait(index, phase))

    @cute.jit
    def producer_acquire_w_index_phase(self, index, phase):
        self.sync_object_empty.wait(index, phase)
        self.sync_object_full.arrive(index, self.producer_mask)

    def load(self, state):
        self.producer_acquire(state)

    @staticmethod
    def create(n):
        cute.arch.sync_threads()


class NamedBarrier:
    def arrive_and_wait_w_index(self, index):
        cute.arch.barrier(barrier_id=self.barrier_id + index, number_of_threads=self.num_threads)


@cute.jit
def step(pipe, index, phase, nbar):
    pipe.consumer_wait_w_index_phase(index, phase)
    pipe.load(index)
    nbar.arrive_and_wait_w_index(index)
