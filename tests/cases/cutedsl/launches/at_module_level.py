import cutlass.cute as cute


@cute.kernel
def work(a):
    cute.arch.sync_threads()


if __name__ == "__main__":
    work(1).launch(grid=(1, 1, 1), block=(32, 1, 1))
