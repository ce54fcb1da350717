import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, mbar, bars, i, storage, handle, self, params):
    cute.arch.mbarrier_wait(mbar + i, 0)
    cute.arch.mbarrier_arrive(storage.mbar.data_ptr() + i)
    cute.arch.mbarrier_wait(bars[i], phase=0)
    cute.arch.mbarrier_wait(phase=0, mbar_ptr=mbar)
    cute.arch.mbarrier_arrive_and_expect_tx(mbar, 1024, peer_cta_rank_in_cluster=0)
    cute.arch.barrier(barrier_id=int(self.NamedBarrier.X) + i, number_of_threads=128)
    cute.arch.barrier(barrier_id=int(self.NamedBarrier.X), number_of_threads=128)
    cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
    cute.arch.barrier()
    pipe.consumer_wait_w_index_phase(state.index, state.phase)
    pipe.producer_commit_w_index(i)
    pipe.consumer_wait(make_state(i))
    pipe.consumer_release(state.clone())
    pipe.consumer_release(self.states[i])
    cute.arch.mbarrier_arrive(handle.barrier)
    self.pipes[i].consumer_wait(state)
    self.pipes[1][0].consumer_wait(state)
    params.mma_pipeline.consumer_wait(state)
    pipe.sync_object_empty.wait(0, state.phase)
    pipe.consumer_wait(state=state)
    pipe.consumer_wait(*state)
    bars["a  b"].arrive_and_wait()
    cute.arch.mbarrier_wait(
        mbar
        + i,  # which
        0,
    )
