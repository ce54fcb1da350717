import cutlass
import cutlass.cute as cute


@cute.kernel
def returns_early(a, flag: cutlass.Constexpr):
    if cutlass.const_expr(flag):
        return
    cute.arch.sync_threads()
    return


@cute.kernel
def only_returns(a):
    return


@cute.kernel
def ends_in_ifs(a):
    cute.arch.sync_threads()
    if a:
        if a > 1:
            cute.arch.sync_threads()
        else:
            if a > 2: cute.arch.sync_threads()


@cute.kernel
def ends_in_a_loop(a):

    for k in range(4):
        cute.arch.sync_threads()
    # nothing follows
@cute.kernel
def raises(a):
    cute.arch.sync_threads()
    raise NotImplementedError


class K:
    @cute.kernel
    def method(self, a):
        """Both branches return."""
        if cutlass.const_expr(a):
            cute.arch.sync_threads(); return
        else: return
    x = 1
