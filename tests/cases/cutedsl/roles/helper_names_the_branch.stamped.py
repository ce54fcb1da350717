from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state, mProf=None):
        _as.bind(mProf, "K.kernel"); warp_idx = cute.arch.warp_idx()
        if warp_idx == 0:
            _as.role("load"); cute.arch.setmaxregister_decrease(40)
            self.load(pipe, state); _as.role_end()
        else:
            _as.role("mma"); cute.arch.setmaxregister_increase(232)
            state = self.mma(pipe, state)
            _as.enter(1, text='warp'); cute.arch.sync_warp(); _as.exit(1); _as.role_end()
        if not self.is_dma_warp_group:
            _as.role("consume"); consume(pipe, state); _as.role_end()
        if warp_idx % 4 == 0:
            _as.enter(2, text='warp'); cute.arch.sync_warp(); _as.exit(2)
        if warp_idx == 0:  # Epilogue
            _as.role("epilogue"); _as.enter(3, pipe, state=state); pipe.consumer_wait(state); _as.exit(3); _as.role_end()
        if warp_idx == 0:  # noqa
            _as.role("consumer"); _as.enter(4, pipe, state=state); pipe.consumer_wait(state); _as.exit(4); _as.role_end()  # the pipelines name it
        else:
            _as.role("producer")
            for k in range(2):
                _as.enter(5, pipe, state=state); pipe.producer_acquire(state); _as.exit(5)
            _as.role_end()
        if warp_idx == 0:  # TODO merge
            _as.enter(6, text='warp'); cute.arch.sync_warp(); _as.exit(6)
        x = 1; _as.release()

    def load(self, pipe, state):
        _as.enter(7, pipe, state=state); pipe.producer_acquire(state); _as.exit(7)

    def mma(self, pipe, state):
        _as.enter(8, pipe, state=state); pipe.consumer_wait(state); _as.exit(8)


def consume(pipe, state):
    warp_idx = cute.arch.warp_idx()
    if warp_idx == 0:
        consume(pipe, state)
    if warp_idx == self.store_warp_id:
        _as.role("store"); _as.enter(9, pipe, state=state); pipe.consumer_wait(state); _as.exit(9); _as.role_end()
    x = 1
