import cutlass.cute as cute


@cute.jit
def helper(consumer, handle=cute.arch.sync_threads()):
    cute.arch.sync_warp()

    def inner(h=consumer.wait_and_advance()):
        return h

    @consumer.wait()
    def other():
        return f"{consumer.wait_and_advance()}"

    class Box(consumer.wait()):
        held = consumer.wait_and_advance()
