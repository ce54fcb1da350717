from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}); import cutlass
import cutlass.cute as cute


@cute.kernel
def none(mProf=None):
    _as.bind(mProf, "none"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


@cute.kernel
def one(a, mProf=None):
    _as.bind(mProf, "one"); _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2); _as.release()


@cute.kernel
def comma(a, b: cute.Tensor, mProf=None, ):
    _as.bind(mProf, "comma"); _as.enter(3, text='CTA'); cute.arch.sync_threads(); _as.exit(3); _as.release()


@cute.kernel
def defaults(a, op: cutlass.Constexpr = lambda x: x, shape=(1, (2, 3)), *, last: int = (4), mProf=None):
    _as.bind(mProf, "defaults"); _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4); _as.release()


@cute.kernel
def lines(
    a: cute.Tensor,  # the input
    b: "cute.Tensor" = None, mProf=None,  # the output
    # and nothing else
):
    _as.bind(mProf, "lines"); _as.enter(5, text='CTA'); cute.arch.sync_threads(); _as.exit(5); _as.release()


@cute.kernel
def spread(
    a,
    c: cutlass.Constexpr[int], mProf=None
    # the count
) -> None:
    _as.bind(mProf, "spread"); _as.enter(6, text='CTA'); cute.arch.sync_threads(); _as.exit(6); _as.release()


@cute.kernel
def rest(a, *args: cute.Tensor, mProf=None):
    _as.bind(mProf, "rest"); _as.enter(7, text='CTA'); cute.arch.sync_threads(); _as.exit(7); _as.release()


@cute.kernel
def named(mProf=None, **kwargs):
    _as.bind(mProf, "named"); _as.enter(8, text='CTA'); cute.arch.sync_threads(); _as.exit(8); _as.release()


@cute.kernel
def both(a, *args, b=1, mProf=None, **kwargs):
    _as.bind(mProf, "both"); _as.enter(9, text='CTA'); cute.arch.sync_threads(); _as.exit(9); _as.release()


@cute.kernel
def positional(a, b, /, mProf=None):
    _as.bind(mProf, "positional"); _as.enter(10, text='CTA'); cute.arch.sync_threads(); _as.exit(10); _as.release()


@cute.kernel
def keywords(*, a, b, mProf=None):
    _as.bind(mProf, "keywords"); _as.enter(11, text='CTA'); cute.arch.sync_threads(); _as.exit(11); _as.release()
