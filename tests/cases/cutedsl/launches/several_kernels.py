import cutlass.cute as cute


class Backward:
    @cute.jit
    def __call__(self, a, stream=None):
        """Two launches."""
        self.first(a).launch(grid=(1, 1, 1), block=(32, 1, 1))
        self.second(a).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)

    @cute.kernel
    def first(self, a):
        cute.arch.sync_threads()

    @cute.kernel
    def second(self, a):
        cute.arch.sync_threads()
