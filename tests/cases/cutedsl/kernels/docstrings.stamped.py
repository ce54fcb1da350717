from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY", {1, 2, 4}); import cutlass.cute as cute


@cute.kernel
def only_docstring(a, mProf=None):
    """Nothing yet."""; _as.bind(mProf, "only_docstring"); _as.release()


@cute.kernel
def docstring_then_simple(a, mProf=None):
    """One line
    and another."""
    _as.bind(mProf, "docstring_then_simple"); _as.enter(1, text='CTA'); cute.arch.sync_threads(); _as.exit(1); _as.release()


@cute.kernel
def docstring_then_compound(a, mProf=None):
    """Doc."""; _as.bind(mProf, "docstring_then_compound")
    if a:
        _as.enter(2, text='CTA'); cute.arch.sync_threads(); _as.exit(2)
    _as.enter(3, text='warp'); cute.arch.sync_warp(); _as.exit(3); _as.release()


@cute.kernel
def docstring_and_more_on_its_line(a, mProf=None):
    """Doc."""; _as.bind(mProf, "docstring_and_more_on_its_line"); _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4); _as.release()


@cute.kernel
def ellipsis(a, mProf=None):
    _as.bind(mProf, "ellipsis"); ...; _as.release()


@cute.kernel
def passes(a, mProf=None): _as.bind(mProf, "passes"); pass; _as.release()
