import cutlass,cutlass.cute as cute
from cutlass.cute.arch import sync_threads, mbarrier_wait as wait_for
from cutlass.pipeline import pipeline_init_arrive, pipeline_init_wait
import cutlass.experimental.primitives as prims


@cute.jit
def step(bar, phase):
    pipeline_init_arrive(cluster_shape_mn=(2, 1), is_relaxed=True)
    pipeline_init_wait(cluster_shape_mn=(2, 1))
    sync_threads()
    prims.mbarrier_wait_parity(bar, phase)
    prims.barrier_cta_sync(3, 128)
    prims.wgmma_wait_group_sync_aligned(0)
