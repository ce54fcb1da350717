from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def helper(consumer, handle=cute.arch.sync_threads()):
    _as.enter(1, text='warp'); cute.arch.sync_warp(); _as.exit(1)

    def inner(h=consumer.wait_and_advance()):
        return h

    @consumer.wait()
    def other():
        return f"{consumer.wait_and_advance()}"

    class Box(consumer.wait()):
        held = consumer.wait_and_advance()
