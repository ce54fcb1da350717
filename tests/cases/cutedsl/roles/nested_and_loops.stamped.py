from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass
import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.warp_idx()
        for i in cutlass.range_constexpr(len(self.empty_warp_ids)):
            if warp_idx == self.empty_warp_ids[i]:
                _as.role("empty"); _as.enter(1, text='warp'); cute.arch.sync_warp(); _as.exit(1); _as.role_end()
        if warp_idx < self.mma_warp_id:
            _as.role("mma")
            if warp_idx == self.load_warp_id:
                _as.role("load")
                if cutlass.const_expr(self.has_bias):
                    _as.enter(2, pipe, state=state); pipe.producer_acquire(state); _as.exit(2)
                _as.role_end()
            _as.role_end()
        if cutlass.const_expr(self.num_warps == 8):
            _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3)
        if state.is_valid:
            _as.enter(4, pipe, state=state); pipe.consumer_wait(state); _as.exit(4)
        _as.release()
