import cutlass
import cutlass.cute as cute
from cutlass.cute.arch import cluster_arrive, cluster_wait


@cute.jit
def step(reduce, x, n, pipe, hook_fn):
    reduce(x, hook_fn=cute.arch.cluster_wait if cutlass.const_expr(n > 1) else None)
    reduce(x, hook_fn=cluster_wait)
    cluster_arrive()
    hook_fn()
    wait = cute.arch.cluster_wait
    return reduce(x, wait)
