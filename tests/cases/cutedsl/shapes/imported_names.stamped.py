from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {2, 3, 5}); import cutlass,cutlass.cute as cute
from cutlass.cute.arch import sync_threads, mbarrier_wait as wait_for
from cutlass.pipeline import pipeline_init_arrive, pipeline_init_wait
import cutlass.experimental.primitives as prims


@cute.jit
def step(bar, phase):
    _as.open(1, text='cluster'); pipeline_init_arrive(cluster_shape_mn=(2, 1), is_relaxed=True); _as.signal(1)
    _as.enter(2, text='cluster'); pipeline_init_wait(cluster_shape_mn=(2, 1)); _as.exit(2)
    _as.enter(3, text='CTA'); sync_threads(); _as.exit(3)
    _as.enter(4, pointer=bar, text='bar'); prims.mbarrier_wait_parity(bar, phase); _as.exit(4)
    _as.enter(5, barrier_id=3, text='3'); prims.barrier_cta_sync(3, 128); _as.exit(5)
    _as.enter(6, text='wgmma'); prims.wgmma_wait_group_sync_aligned(0); _as.exit(6)
