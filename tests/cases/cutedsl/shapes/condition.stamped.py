from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute


@cute.jit
def step(consumer, pipe, state, n):
    while _as.around(1, _as.enter(1, consumer), consumer.wait_and_advance()).index < n:
        n -= 1
    if _as.around(2, _as.enter(2, consumer), consumer.wait_and_advance()).is_valid:
        n -= 1
    elif _as.around(3, _as.enter(3, pipe), pipe.wait_and_advance()):
        n -= 2
    while pipe.consumer_try_wait(state):
        n -= 1
    for k in _as.around(4, _as.enter(4, consumer), consumer.wait_and_advance()).items:
        n -= 1
    with _as.around(5, _as.enter(5, consumer), consumer.wait_and_advance()) as handle:
        n -= 1
    assert _as.around(6, _as.enter(6, consumer), consumer.wait_and_advance())
    n += _as.around(7, _as.enter(7, consumer), consumer.wait_and_advance()).index
