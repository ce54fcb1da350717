import cutlass.cute as cute


class K:
    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == 0:
            cute.arch.setmaxregister_decrease(40)
            self.load(pipe, state)
        else:
            cute.arch.setmaxregister_increase(232)
            state = self.mma(pipe, state)
            cute.arch.sync_warp()
        if not self.is_dma_warp_group:
            consume(pipe, state)
        if warp_idx % 4 == 0:
            cute.arch.sync_warp()
        if warp_idx == 0:  # Epilogue
            pipe.consumer_wait(state)
        if warp_idx == 0:  # noqa
            pipe.consumer_wait(state)  # the pipelines name it
        else:
            for k in range(2):
                pipe.producer_acquire(state)
        if warp_idx == 0:  # TODO merge
            cute.arch.sync_warp()
        x = 1

    def load(self, pipe, state):
        pipe.producer_acquire(state)

    def mma(self, pipe, state):
        pipe.consumer_wait(state)


def consume(pipe, state):
    warp_idx = cute.arch.warp_idx()
    if warp_idx == 0:
        consume(pipe, state)
    if warp_idx == self.store_warp_id:
        pipe.consumer_wait(state)
    x = 1
