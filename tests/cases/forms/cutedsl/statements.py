import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup


@cute.jit
def step(pipe, state, full, empty, fence):
    pipe.consumer_wait(state)
    cute.arch.mbarrier_wait(full, 0)
    warpgroup.wait_group(1)
    warpgroup.wait_group(0)
    pipe.consumer_release(state)
    fence.arrive()
    fence.arrive_and_wait()
