from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2}); import cutlass.cute as cute


class Backward:
    @cute.jit
    def __call__(self, a, stream=None, mProf=None):
        """Two launches."""
        self.first(a, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))
        self.second(a, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)

    @cute.kernel
    def first(self, a, mProf=None):
        _as.bind(mProf, "Backward.first"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()

    @cute.kernel
    def second(self, a, mProf=None):
        _as.bind(mProf, "Backward.second"); _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2); _as.release()
