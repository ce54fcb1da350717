from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute


@cute.kernel
def work(a=None, b=None, mProf=None):
    _as.bind(mProf, "work"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


@cute.jit
def no_arguments(mProf=None):
    work(**_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))
    work(
        # nothing
    **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def star(*args, mProf=None):
    work(*args, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def keywords(a, mProf=None, **more):
    work(b=a, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))
    work(a, **more, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def nested(a, b, mProf=None):
    (work(max(a, b), (1, 2), **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1)))


@cute.jit
def two_steps(a, mProf=None):
    launcher = work(a, **_as.hand(mProf))
    launcher.launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def under_a_condition(a, flag, mProf=None):
    if flag: work(a, **_as.hand(mProf)).launch(grid=(1, 1, 1), block=(32, 1, 1))
    return work(a, **_as.hand(mProf),).launch(grid=(1, 1, 1), block=(32, 1, 1))
