from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute
from functools import partial


class K:
    @cute.jit
    def run(self, pipe_k, pipe_v, state):
        load = partial(self.load_kv, pipe_k)
        load(state)
        self.load_kv(pipe_v, state)
        self.each(self.load_kv, pipe_k, state)

    @cute.jit
    def load_kv(self, pipeline, state):
        _as.enter(1, pipeline, state=state); pipeline.producer_acquire(state); _as.exit(1)

    def each(self, callback, pipe, state):
        callback(pipe, state)
