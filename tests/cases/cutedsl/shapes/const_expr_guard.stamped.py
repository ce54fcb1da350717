from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass
import cutlass.cute as cute


@cute.jit
def step(self, pipe, state):
    if cutlass.const_expr(self.has_bias):
        _as.enter(1, pipe, state=state); pipe.consumer_wait(state); _as.exit(1)
    elif cutlass.const_expr(self.has_scale):
        _as.open(2, pipe, state=state); pipe.consumer_release(state); _as.signal(2)
    else:
        _as.enter(3, text='warp'); cute.arch.sync_warp(); _as.exit(3)
