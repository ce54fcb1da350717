import cutlass
import cutlass.cute as cute
from cutlass.cute import experimental as cute_ext


@cute.kernel()
def called(a):
    cute.arch.sync_threads()


@cute.experimental.kernel
def experimental(a):
    cute.arch.sync_threads()


@cute_ext.kernel
def aliased(a):
    cute.arch.sync_threads()


@cutlass.cute.kernel
def long(a):
    cute.arch.sync_threads()


class Kernels:
    @staticmethod
    @cute.kernel
    def static(a):
        cute.arch.sync_threads()

    @cute.kernel(preprocess=True)
    def method(self, a):
        cute.arch.sync_threads()


@cute.jit
def helper(a):
    cute.arch.sync_threads()


def plain(a):
    cute.arch.sync_threads()
