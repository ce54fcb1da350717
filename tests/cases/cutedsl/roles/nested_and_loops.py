import cutlass
import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        for i in cutlass.range_constexpr(len(self.empty_warp_ids)):
            if warp_idx == self.empty_warp_ids[i]:
                cute.arch.sync_warp()
        if warp_idx < self.mma_warp_id:
            if warp_idx == self.load_warp_id:
                if cutlass.const_expr(self.has_bias):
                    pipe.producer_acquire(state)
        if cutlass.const_expr(self.num_warps == 8):
            pipe.consumer_wait(state)
        if state.is_valid:
            pipe.consumer_wait(state)
