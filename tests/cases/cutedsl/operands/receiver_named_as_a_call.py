import cutlass.cute as cute


@cute.jit
def step(self, handle):
    self.barrier.arrive_and_wait()
    handle.barrier.wait(0, 1)
