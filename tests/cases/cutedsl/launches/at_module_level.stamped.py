from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute


@cute.kernel
def work(a, mProf=None):
    _as.bind(mProf, "work"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


if __name__ == "__main__":
    work(1).launch(grid=(1, 1, 1), block=(32, 1, 1))
