from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute


class Gemm:
    @cute.jit
    def __call__(self, a, b, stream, mProf=None):
        self.kernel(
            a,
            b, **_as.hand(mProf),  # the output
        ).launch(
            grid=(1, 1, 1),
            block=(128, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(self, a, b, mProf=None):
        _as.bind(mProf, "Gemm.kernel"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()
