import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == self.load_warp_id:
            pipe.producer_acquire(state)
        if warp_idx < self.num_mma_warps:
            pipe.consumer_wait(state)
        elif warp_idx in self.epilogue_warp_ids:
            pipe.consumer_release(state)
        elif warp_idx == self.softmax0_warp_ids[0]:
            self.softmax(pipe, state)
        x = 1
