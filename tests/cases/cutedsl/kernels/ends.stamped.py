from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2, 3, 4, 5, 6, 7}); import cutlass
import cutlass.cute as cute


@cute.kernel
def returns_early(a, flag: cutlass.Constexpr, mProf=None):
    _as.bind(mProf, "returns_early")
    if cutlass.const_expr(flag):
        _as.release(); return
    _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1)
    _as.release(); return


@cute.kernel
def only_returns(a, mProf=None):
    _as.bind(mProf, "only_returns"); _as.release(); return


@cute.kernel
def ends_in_ifs(a, mProf=None):
    _as.bind(mProf, "ends_in_ifs"); _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2)
    if a:
        if a > 1:
            _as.enter(3, text='CTA'); cute.arch.sync_threads(); _as.exit(3)
        else:
            if a > 2: _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4)
    _as.release()

@cute.kernel
def ends_in_a_loop(a, mProf=None):
    _as.bind(mProf, "ends_in_a_loop")
    for k in range(4):
        _as.enter(5, text='CTA'); cute.arch.sync_threads(); _as.exit(5)
    _as.release()
    # nothing follows
@cute.kernel
def raises(a, mProf=None):
    _as.bind(mProf, "raises"); _as.enter(6, text='CTA'); cute.arch.sync_threads(); _as.exit(6)
    raise NotImplementedError


class K:
    @cute.kernel
    def method(self, a, mProf=None):
        """Both branches return."""; _as.bind(mProf, "K.method")
        if cutlass.const_expr(a):
            _as.enter(7, text='CTA'); cute.arch.sync_threads(); _as.exit(7); _as.release(); return
        else: _as.release(); return
        _as.release()
    x = 1
