from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cute
from cutlass import const_expr


class K:
    @cute.kernel
    def kernel(self, pipe, state, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.warp_idx()
        if warp_idx < 4:
            _as.role("producer"); _as.enter(1, pipe, state=state); pipe.producer_acquire(state); _as.exit(1); _as.role_end()
        else:
            _as.role("mma"); state = self.start(state)
            if const_expr(self.num_wg == 1):
                self.mma(pipe, state)
            else:
                self.mma(pipe, state, 2)
            _as.role_end()
        if (
            (const_expr(not self.is_wide) and warp_idx <= self.softmax_warp_ids[-1]) or
            (const_expr(len(self.extra_warp_ids) > 1) and warp_idx == self.last_warp_id)
        ):
            _as.role("softmax"); _as.enter(2, pipe, state=state); pipe.consumer_wait(state); _as.exit(2); _as.role_end()
        if const_expr(self.load_warp_id == 0):
            _as.open(3, pipe, state=state); pipe.consumer_release(state); _as.signal(3)
        x = 1; _as.release()

    def start(self, state):
        return state

    def mma(self, pipe, state, groups=1):
        _as.enter(4, pipe, state=state); pipe.consumer_wait(state); _as.exit(4)
