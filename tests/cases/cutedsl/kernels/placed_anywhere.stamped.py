from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 3, 4}); import cutlass.cute as cute

HAS_TMA = True

if HAS_TMA:

    @cute.kernel
    def conditional(a, mProf=None):
        _as.bind(mProf, "conditional"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


def build(n):
    @cute.kernel
    def nested(a, mProf=None):
        _as.bind(mProf, "build.nested")
        def inner():
            _as.enter(2, text='warp'); cute.arch.sync_warp(); _as.exit(2)
            return n

        inner()
        _as.enter(3, text='CTA'); cute.arch.sync_threads(); _as.exit(3); _as.release()

    @cute.jit
    def launch(a, mProf=None):
        nested(a, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return launch


@cute.kernel
def one_line(a, mProf=None): _as.bind(mProf, "one_line"); _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4); _as.release()
