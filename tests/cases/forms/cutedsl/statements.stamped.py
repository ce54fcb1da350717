from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {7}, forms={1: 'carried', 2: 'carried-exit', 3: 'enter', 4: 'exit', 5: 'before'}); import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup


@cute.jit
def step(pipe, state, full, empty, fence):
    _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1)
    _as.enter(2, pointer=full, text='full'); cute.arch.mbarrier_wait(full, 0); _as.exit(2)
    _as.enter(3, text='wgmma'); warpgroup.wait_group(1); _as.exit(3)
    _as.enter(4, text='wgmma'); warpgroup.wait_group(0); _as.exit(4)
    _as.open(5, pipe, state=state); pipe.consumer_release(state); _as.signal(5)
    _as.open(6, fence); fence.arrive(); _as.signal(6)
    _as.enter(7, fence); fence.arrive_and_wait(); _as.exit(7)
