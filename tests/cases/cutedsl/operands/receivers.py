import cutlass.cute as cute


@cute.jit
def step(self, a, b, flag, pipes, i, state):
    (a if flag else b).consumer_wait(state)
    pipes[-1].consumer_wait(state)
    pipes[int(i)].consumer_wait(state)
    use((a or b).wait_and_advance())
    self.handle.release()
    getattr(a, "pipe").consumer_release(state)
