import cutlass.cute as cute


class Gemm:
    @cute.jit
    def __call__(self, a, b, stream):
        self.kernel(
            a,
            b,  # the output
        ).launch(
            grid=(1, 1, 1),
            block=(128, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(self, a, b):
        cute.arch.sync_threads()
