import cutlass.cute as cute


@cute.kernel
def only_docstring(a):
    """Nothing yet."""


@cute.kernel
def docstring_then_simple(a):
    """One line
    and another."""
    cute.arch.sync_threads()


@cute.kernel
def docstring_then_compound(a):
    """Doc."""
    if a:
        cute.arch.sync_threads()
    cute.arch.sync_warp()


@cute.kernel
def docstring_and_more_on_its_line(a):
    """Doc."""; cute.arch.sync_threads()


@cute.kernel
def ellipsis(a):
    ...


@cute.kernel
def passes(a): pass
