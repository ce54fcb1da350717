from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {6, 15}); import cutlass.cute as cute
from cutlass.cute.nvgpu import tcgen05, warpgroup


@cute.jit
def step(pipe, state, full, empty, fence):
    _as.enter(1, pipe, state=state); pipe.producer_acquire(state); _as.exit(1)
    _as.open(2, pipe, state=state); pipe.producer_commit(state); _as.signal(2)
    _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3)
    _as.open(4, pipe, state=state); pipe.consumer_release(state); _as.signal(4)
    _as.enter(5, pipe, state=state); pipe.producer_tail(state); _as.exit(5)
    _as.enter(6, text='CTA'); cute.arch.sync_threads(); _as.exit(6)
    _as.enter(7, text='warp'); cute.arch.sync_warp(); _as.exit(7)
    _as.enter(8, pointer=full, text='full'); cute.arch.mbarrier_wait(full, 0); _as.exit(8)
    _as.open(9, pointer=empty, text='empty'); cute.arch.mbarrier_arrive(empty); _as.signal(9)
    _as.open(10, text='cp.async.bulk'); cute.arch.cp_async_bulk_commit_group(); _as.signal(10)
    _as.enter(11, text='cp.async.bulk'); cute.arch.cp_async_bulk_wait_group(0, read=True); _as.exit(11)
    _as.open(12, text='wgmma'); warpgroup.commit_group(); _as.signal(12)
    _as.enter(13, text='wgmma'); warpgroup.wait_group(0); _as.exit(13)
    _as.open(14, pointer=empty, text='empty'); tcgen05.commit(empty); _as.signal(14)
    _as.enter(15, fence); fence.arrive_and_wait(); _as.exit(15)
    _as.open(16, fence); fence.arrive(); _as.signal(16)
