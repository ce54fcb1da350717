import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, bar, phase):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
        while not cute.arch.mbarrier_try_wait(bar, phase):
            pass
        if warp_idx == self.mma_warp_id:
            x = 1
            if phase:
                while not cute.arch.mbarrier_try_wait(bar, phase):
                    pass
