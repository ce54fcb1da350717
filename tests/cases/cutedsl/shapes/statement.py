import cutlass.cute as cute
from cutlass.cute.nvgpu import tcgen05, warpgroup


@cute.jit
def step(pipe, state, full, empty, fence):
    pipe.producer_acquire(state)
    pipe.producer_commit(state)
    pipe.consumer_wait(state)
    pipe.consumer_release(state)
    pipe.producer_tail(state)
    cute.arch.sync_threads()
    cute.arch.sync_warp()
    cute.arch.mbarrier_wait(full, 0)
    cute.arch.mbarrier_arrive(empty)
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0, read=True)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    tcgen05.commit(empty)
    fence.arrive_and_wait()
    fence.arrive()
