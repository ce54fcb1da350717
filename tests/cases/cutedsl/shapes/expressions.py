import cutlass
import cutlass.cute as cute


@cute.jit
def step(pipe, state, run, flag, pipes, order):
    run(lambda: pipe.consumer_wait(state))
    later = lambda s: pipe.consumer_release(s)
    handle = pipe.wait_and_advance() if flag else order.wait_and_advance()
    handles = [each.wait_and_advance() for each in pipes]
    pair = (pipe.wait_and_advance(), order.wait_and_advance())
    handles[0], handles[1] = pipe.wait_and_advance(), order.wait_and_advance()
    ready = pipe.wait_and_advance() and not order.wait_and_advance()
    del handles[pipe.wait_and_advance().index]
    return pipe.wait_and_advance()
