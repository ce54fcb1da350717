from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {6, 7, 9, 22}); import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, mbar, bars, i, storage, handle, self, params):
    _as.enter(1, later=True); cute.arch.mbarrier_wait(_as.see(1, mbar + i, "pointer", 'mbar + i'), 0); _as.exit(1)
    _as.open(2, later=True); cute.arch.mbarrier_arrive(_as.see(2, storage.mbar.data_ptr() + i, "pointer", 'storage.mbar.data_ptr() + i')); _as.signal(2)
    _as.enter(3, later=True); cute.arch.mbarrier_wait(_as.see(3, bars[i], "pointer", 'bars[i]'), phase=0); _as.exit(3)
    _as.enter(4, pointer=mbar, text='mbar'); cute.arch.mbarrier_wait(phase=0, mbar_ptr=mbar); _as.exit(4)
    _as.open(5, pointer=mbar, text='mbar'); cute.arch.mbarrier_arrive_and_expect_tx(mbar, 1024, peer_cta_rank_in_cluster=0); _as.signal(5)
    _as.enter(6, later=True); cute.arch.barrier(barrier_id=_as.see(6, int(self.NamedBarrier.X) + i, "barrier_id", 'int(self.NamedBarrier.X) + i'), number_of_threads=128); _as.exit(6)
    _as.enter(7, barrier_id=int(self.NamedBarrier.X), text='int(self.NamedBarrier.X)'); cute.arch.barrier(barrier_id=int(self.NamedBarrier.X), number_of_threads=128); _as.exit(7)
    _as.open(8, barrier_id=1, text='1'); cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128); _as.signal(8)
    _as.enter(9); cute.arch.barrier(); _as.exit(9)
    _as.enter(10, pipe, later=True); pipe.consumer_wait_w_index_phase(_as.see(10, state.index, "index"), state.phase); _as.exit(10)
    _as.open(11, pipe, index=i); pipe.producer_commit_w_index(i); _as.signal(11)
    _as.enter(12, pipe, later=True); pipe.consumer_wait(_as.see(12, make_state(i), "state")); _as.exit(12)
    _as.open(13, pipe, later=True); pipe.consumer_release(_as.see(13, state.clone(), "state")); _as.signal(13)
    _as.open(14, pipe, later=True); pipe.consumer_release(_as.see(14, self.states[i], "state")); _as.signal(14)
    _as.open(15, later=True); cute.arch.mbarrier_arrive(_as.see(15, handle.barrier, "pointer", 'handle.barrier')); _as.signal(15)
    _as.enter(16, state=state, later=True); _as.see(16, self.pipes[i], "receiver", 'self.pipes[i]').consumer_wait(state); _as.exit(16)
    _as.enter(17, self.pipes[1][0], state=state); self.pipes[1][0].consumer_wait(state); _as.exit(17)
    _as.enter(18, params.mma_pipeline, state=state); params.mma_pipeline.consumer_wait(state); _as.exit(18)
    _as.enter(19, pipe.sync_object_empty, index=0); pipe.sync_object_empty.wait(0, state.phase); _as.exit(19)
    _as.enter(20, pipe, state=state); pipe.consumer_wait(state=state); _as.exit(20)
    _as.enter(21, pipe); pipe.consumer_wait(*state); _as.exit(21)
    _as.enter(22, later=True); _as.see(22, bars["a  b"], "receiver", 'bars["a b"]').arrive_and_wait(); _as.exit(22)
    _as.enter(23, later=True); cute.arch.mbarrier_wait(
        _as.see(23, mbar
        + i, "pointer", 'mbar + i'),  # which
        0,
    ); _as.exit(23)
