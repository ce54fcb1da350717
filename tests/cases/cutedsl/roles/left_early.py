import cutlass
import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            pipe.producer_acquire(state)
            return
        if warp_idx == self.mma_warp_id: return
        for k in cutlass.range_constexpr(4):
            if warp_idx == self.store_warp_id:
                if cutlass.const_expr(k == 2):
                    continue
                pipe.consumer_wait(state)
                break
        x = 1

    def helper(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            if cutlass.const_expr(self.skips):
                return None
            for k in range(4):
                if cutlass.const_expr(k == 2):
                    break
                if cutlass.const_expr(k == 3):
                    return pipe.wait_and_advance()
                pipe.producer_acquire(state)
        return state
