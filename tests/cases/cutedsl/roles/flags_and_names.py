import cutlass.cute as cute

MMA_WARP = 4


@cute.kernel
def kernel(pipe, state, tma_warp_id: int):
    warp_idx = cute.arch.warp_idx()
    is_tma_warp = warp_idx == 0
    is_umma_warp_0 = warp_idx == 1
    warp_group_idx = warp_idx // 4
    if is_tma_warp:
        pipe.producer_acquire(state)
    if is_umma_warp_0:
        pipe.consumer_wait(state)
    if warp_idx == MMA_WARP:
        pipe.consumer_wait(state)
    if warp_idx == tma_warp_id: pipe.producer_tail(state)
    if warp_group_idx == self.load_warp_group_id:
        pipe.producer_acquire(state)
    if warp_idx >= self.sched_warp_ids[0] and warp_idx < self.sched_warp_ids[-1]:
        pipe.consumer_wait(state)
    if warp_idx == self.load_warp_id or warp_idx == self.extra_warp_id:
        pipe.producer_acquire(state)
    return
