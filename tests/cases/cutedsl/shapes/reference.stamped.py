from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2, 4}); import cutlass
import cutlass.cute as cute
from cutlass.cute.arch import cluster_arrive, cluster_wait


@cute.jit
def step(reduce, x, n, pipe, hook_fn):
    reduce(x, hook_fn=_as.wrap(1, cute.arch.cluster_wait, "wait", 'cluster') if cutlass.const_expr(n > 1) else None)
    reduce(x, hook_fn=_as.wrap(2, cluster_wait, "wait", 'cluster'))
    _as.open(3, text='cluster'); cluster_arrive(); _as.signal(3)
    hook_fn()
    wait = _as.wrap(4, cute.arch.cluster_wait, "wait", 'cluster')
    return reduce(x, wait)
