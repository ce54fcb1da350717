from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute
from cutlass.experimental import task_scheduling as ts


class LoadTask(ts.Task):
    def schedule(self, full, empty):
        empty.acquire()
        self.copy()
        full.commit()

    @cute.jit
    def copy(self, consumer):
        _as.enter(1, consumer); consumer.wait(); _as.exit(1)
        _as.enter(2, text='warp'); cute.arch.sync_warp(); _as.exit(2)


@cute.kernel
def kernel(consumer, mProf=None):
    _as.bind(mProf, "kernel"); _as.enter(3, consumer); consumer.wait(); _as.exit(3)
    _as.open(4, consumer); consumer.release(); _as.signal(4); _as.release()
