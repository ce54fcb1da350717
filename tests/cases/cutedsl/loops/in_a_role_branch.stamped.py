from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, bar, phase, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            _as.role("load")
            _as.enter(1, pointer=bar, text='bar')
            while not cute.arch.mbarrier_try_wait(bar, phase):
                pass
            _as.exit(1)
            _as.role_end()
        _as.enter(2, pointer=bar, text='bar')
        while not cute.arch.mbarrier_try_wait(bar, phase):
            pass
        _as.exit(2)
        if warp_idx == self.mma_warp_id:
            _as.role("mma"); x = 1
            if phase:
                _as.enter(3, pointer=bar, text='bar')
                while not cute.arch.mbarrier_try_wait(bar, phase):
                    pass
                _as.exit(3)
            _as.role_end()
        _as.release()
