import cutlass
import cutlass.cute as cute


@cute.kernel
def none():
    cute.arch.sync_threads()


@cute.kernel
def one(a):
    cute.arch.sync_threads()


@cute.kernel
def comma(a, b: cute.Tensor, ):
    cute.arch.sync_threads()


@cute.kernel
def defaults(a, op: cutlass.Constexpr = lambda x: x, shape=(1, (2, 3)), *, last: int = (4)):
    cute.arch.sync_threads()


@cute.kernel
def lines(
    a: cute.Tensor,  # the input
    b: "cute.Tensor" = None,  # the output
    # and nothing else
):
    cute.arch.sync_threads()


@cute.kernel
def spread(
    a,
    c: cutlass.Constexpr[int]
    # the count
) -> None:
    cute.arch.sync_threads()


@cute.kernel
def rest(a, *args: cute.Tensor):
    cute.arch.sync_threads()


@cute.kernel
def named(**kwargs):
    cute.arch.sync_threads()


@cute.kernel
def both(a, *args, b=1, **kwargs):
    cute.arch.sync_threads()


@cute.kernel
def positional(a, b, /):
    cute.arch.sync_threads()


@cute.kernel
def keywords(*, a, b):
    cute.arch.sync_threads()
