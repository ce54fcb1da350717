from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2, 3, 4, 5, 6, 7, 8}); import cutlass
import cutlass.cute as cute
from cutlass.cute import experimental as cute_ext


@cute.kernel()
def called(a, mProf=None):
    _as.bind(mProf, "called"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


@cute.experimental.kernel
def experimental(a, mProf=None):
    _as.bind(mProf, "experimental"); _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2); _as.release()


@cute_ext.kernel
def aliased(a, mProf=None):
    _as.bind(mProf, "aliased"); _as.enter(3, text='CTA'); cute.arch.sync_threads(); _as.exit(3); _as.release()


@cutlass.cute.kernel
def long(a, mProf=None):
    _as.bind(mProf, "long"); _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4); _as.release()


class Kernels:
    @staticmethod
    @cute.kernel
    def static(a, mProf=None):
        _as.bind(mProf, "Kernels.static"); _as.enter(5, text='CTA'); cute.arch.sync_threads(); _as.exit(5); _as.release()

    @cute.kernel(preprocess=True)
    def method(self, a, mProf=None):
        _as.bind(mProf, "Kernels.method"); _as.enter(6, text='CTA'); cute.arch.sync_threads(); _as.exit(6); _as.release()


@cute.jit
def helper(a):
    _as.enter(7, text='CTA'); cute.arch.sync_threads(); _as.exit(7)


def plain(a):
    _as.enter(8, text='CTA'); cute.arch.sync_threads(); _as.exit(8)
