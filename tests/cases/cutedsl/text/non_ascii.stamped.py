from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY"); import cutlass.cute as cute

NAMEN = {"größe": "→ 🚀"}


@cute.jit
def schritt(zähler, état, 管):
    x = "→ 🚀"; _as.enter(1, 管, state=état); 管.consumer_wait(état); _as.exit(1); y = "é"  # ждать
    """🚀"""; _as.open(2, zähler); zähler.release(); _as.signal(2); f(管.consumer_try_wait(état))
