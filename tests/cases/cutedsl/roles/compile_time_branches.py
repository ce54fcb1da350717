import cute
from cutlass import const_expr


class K:
    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx < 4:
            pipe.producer_acquire(state)
        else:
            state = self.start(state)
            if const_expr(self.num_wg == 1):
                self.mma(pipe, state)
            else:
                self.mma(pipe, state, 2)
        if (
            (const_expr(not self.is_wide) and warp_idx <= self.softmax_warp_ids[-1]) or
            (const_expr(len(self.extra_warp_ids) > 1) and warp_idx == self.last_warp_id)
        ):
            pipe.consumer_wait(state)
        if const_expr(self.load_warp_id == 0):
            pipe.consumer_release(state)
        x = 1

    def start(self, state):
        return state

    def mma(self, pipe, state, groups=1):
        pipe.consumer_wait(state)
