import cutlass.cute as cute

NAMEN = {"größe": "→ 🚀"}


@cute.jit
def schritt(zähler, état, 管):
    x = "→ 🚀"; 管.consumer_wait(état); y = "é"  # ждать
    """🚀"""; zähler.release(); f(管.consumer_try_wait(état))
