from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1}); import cutlass.cute as cute


class Attention:
    @cute.jit
    def tail(self, row_sum):
        _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1)
        return row_sum

    @cute.jit
    def compute(self, row_sum, producer):
        row_sum = self.tail(row_sum)
        _as.enter(2, producer); producer.tail(); _as.exit(2)
        return row_sum
