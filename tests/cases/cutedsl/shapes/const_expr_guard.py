import cutlass
import cutlass.cute as cute


@cute.jit
def step(self, pipe, state):
    if cutlass.const_expr(self.has_bias):
        pipe.consumer_wait(state)
    elif cutlass.const_expr(self.has_scale):
        pipe.consumer_release(state)
    else:
        cute.arch.sync_warp()
