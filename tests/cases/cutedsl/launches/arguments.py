import cutlass.cute as cute


@cute.kernel
def work(a=None, b=None):
    cute.arch.sync_threads()


@cute.jit
def no_arguments():
    work().launch(grid=(1, 1, 1), block=(32, 1, 1))
    work(
        # nothing
    ).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def star(*args):
    work(*args).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def keywords(a, **more):
    work(b=a).launch(grid=(1, 1, 1), block=(32, 1, 1))
    work(a, **more).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def nested(a, b):
    (work(max(a, b), (1, 2)).launch(grid=(1, 1, 1), block=(32, 1, 1)))


@cute.jit
def two_steps(a):
    launcher = work(a)
    launcher.launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def under_a_condition(a, flag):
    if flag: work(a).launch(grid=(1, 1, 1), block=(32, 1, 1))
    return work(a,).launch(grid=(1, 1, 1), block=(32, 1, 1))
