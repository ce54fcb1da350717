from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute

MMA_WARP = 4


@cute.kernel
def kernel(pipe, state, tma_warp_id: int, mProf=None):
    _as.bind(mProf, "kernel"); warp_idx = cute.arch.warp_idx()
    is_tma_warp = warp_idx == 0
    is_umma_warp_0 = warp_idx == 1
    warp_group_idx = warp_idx // 4
    if is_tma_warp:
        _as.role("tma"); _as.enter(1, pipe, state=state); pipe.producer_acquire(state); _as.exit(1); _as.role_end()
    if is_umma_warp_0:
        _as.role("umma"); _as.enter(2, pipe, state=state); pipe.consumer_wait(state); _as.exit(2); _as.role_end()
    if warp_idx == MMA_WARP:
        _as.role("mma"); _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3); _as.role_end()
    if warp_idx == tma_warp_id: _as.role("tma"); _as.enter(4, pipe, state=state); pipe.producer_tail(state); _as.exit(4); _as.role_end()
    if warp_group_idx == self.load_warp_group_id:
        _as.role("load"); _as.enter(5, pipe, state=state); pipe.producer_acquire(state); _as.exit(5); _as.role_end()
    if warp_idx >= self.sched_warp_ids[0] and warp_idx < self.sched_warp_ids[-1]:
        _as.role("sched"); _as.enter(6, pipe, state=state); pipe.consumer_wait(state); _as.exit(6); _as.role_end()
    if warp_idx == self.load_warp_id or warp_idx == self.extra_warp_id:
        _as.role("load"); _as.enter(7, pipe, state=state); pipe.producer_acquire(state); _as.exit(7); _as.role_end()
    _as.release(); return
