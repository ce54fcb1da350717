from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == self.load_warp_id:
            _as.role("load"); _as.enter(1, pipe, state=state); pipe.producer_acquire(state); _as.exit(1); _as.role_end()
        if warp_idx < self.num_mma_warps:
            _as.role("mma"); _as.enter(2, pipe, state=state); pipe.consumer_wait(state); _as.exit(2); _as.role_end()
        elif warp_idx in self.epilogue_warp_ids:
            _as.role("epilogue"); _as.open(3, pipe, state=state); pipe.consumer_release(state); _as.signal(3); _as.role_end()
        elif warp_idx == self.softmax0_warp_ids[0]:
            _as.role("softmax0"); self.softmax(pipe, state); _as.role_end()
        x = 1; _as.release()
