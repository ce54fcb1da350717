from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass
import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            _as.role("load"); _as.enter(1, pipe, state=state); pipe.producer_acquire(state); _as.exit(1)
            _as.role_end(); _as.release(); return
        if warp_idx == self.mma_warp_id: _as.role("mma"); _as.role_end(); _as.release(); return
        for k in cutlass.range_constexpr(4):
            if warp_idx == self.store_warp_id:
                _as.role("store")
                if cutlass.const_expr(k == 2):
                    _as.role_end(); continue
                _as.enter(2, pipe, state=state); pipe.consumer_wait(state); _as.exit(2)
                _as.role_end(); break
        x = 1; _as.release()

    def helper(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            _as.role("load")
            if cutlass.const_expr(self.skips):
                _as.role_end(); return None
            for k in range(4):
                if cutlass.const_expr(k == 2):
                    break
                if cutlass.const_expr(k == 3):
                    _as.role_end(); return _as.around(3, _as.enter(3, pipe), pipe.wait_and_advance())
                _as.enter(4, pipe, state=state); pipe.producer_acquire(state); _as.exit(4)
            _as.role_end()
        return state
