import cutlass.cute as cute

HAS_TMA = True

if HAS_TMA:

    @cute.kernel
    def conditional(a):
        cute.arch.sync_threads()


def build(n):
    @cute.kernel
    def nested(a):
        def inner():
            cute.arch.sync_warp()
            return n

        inner()
        cute.arch.sync_threads()

    @cute.jit
    def launch(a):
        nested(a).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return launch


@cute.kernel
def one_line(a): cute.arch.sync_threads()
