import cutlass.cute as cute
from cutlass.experimental import task_scheduling as ts


class LoadTask(ts.Task):
    def schedule(self, full, empty):
        empty.acquire()
        self.copy()
        full.commit()

    @cute.jit
    def copy(self, consumer):
        consumer.wait()
        cute.arch.sync_warp()


@cute.kernel
def kernel(consumer):
    consumer.wait()
    consumer.release()
