# SPDX-License-Identifier: Apache-2.0
"""The judge of the corpus check: it must accept stamps in every form, and nothing else."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.corpus.unstamped import difference

HEAD = "from autostamp.runtime.cutedsl.stamps import stamper as _stamper\n_as = _stamper('k')\n"

ACCEPTED = [
    (
        "statements",
        "c.wait()\nd.release()",
        "_as.enter(1, c)\nc.wait()\n_as.exit(1)\n_as.open(2, d)\nd.release()\n_as.signal(2)",
    ),
    ("around", "h = c.wait()", "h = _as.around(1, _as.enter(1, c), c.wait())"),
    ("around in a lambda", "f(lambda: s.wait(0))", "f(lambda: _as.around(1, _as.enter(1, s), s.wait(0)))"),
    (
        "around, chained",
        "p.acquire().commit()",
        "_as.around(2, _as.open(2), _as.around(1, _as.enter(1, p), p.acquire()).commit())",
    ),
    (
        "see",
        "p.consumer_wait(next(s), t)",
        "_as.enter(1, p)\np.consumer_wait(_as.see(1, next(s), 'state'), t)\n_as.exit(1)",
    ),
    ("wait loop", "while not b.try_wait(): pass", "_as.enter(1, b)\nwhile not b.try_wait(): pass\n_as.exit(1)"),
    (
        "kernel",
        "def k(self, a, b=1):\n    w()\n    return",
        "def k(self, a, b=1, mProf=None):\n    _as.bind(mProf, 'k')\n    w()\n    _as.release()\n    return",
    ),
    ("keyword only", "def k(a, *, b):\n    w()", "def k(a, *, b, mProf=None):\n    _as.bind(mProf, 'k')\n    w()"),
    ("launch", "self.kernel(a, *b).launch(grid=g)", "self.kernel(a, *b, mProf=mProf).launch(grid=g)"),
    ("launch by position", "self.kernel(a).launch(grid=g)", "self.kernel(a, mProf).launch(grid=g)"),
    (
        "role",
        "if warp == 0:\n    w()\nelse:\n    v()",
        "if warp == 0:\n    _as.role('load')\n    w()\n    _as.role_end()\nelse:\n    v()",
    ),
    ("finally", "w()\nv()", "try:\n    w()\n    v()\nfinally:\n    _as.release()"),
    (
        "temporary",
        "f(a.wait(), b.wait())",
        "_autostamp_1 = a.wait()\n_autostamp_2 = b.wait()\nf(_autostamp_1, _autostamp_2)",
    ),
    ("one line becomes a block", "if x: c.wait()", "if x:\n    _as.enter(1, c)\n    c.wait()\n    _as.exit(1)"),
]

REFUSED = [
    ("call lost", "c.wait()\nw()", "_as.enter(1, c)\nw()"),
    ("call hidden in a stamp", "c.wait()", "_as.enter(1, c.wait())"),
    ("call twice", "c.wait()", "_as.enter(1, c)\nc.wait()\nc.wait()\n_as.exit(1)"),
    ("order", "c.wait()\nd.release()", "_as.enter(1, c)\nd.release()\nc.wait()"),
    ("other argument", "c.wait(1)", "_as.enter(1, c)\nc.wait(2)\n_as.exit(1)"),
    ("moved into a branch", "if x:\n    w()\nc.wait()", "if x:\n    w()\n    _as.enter(1, c)\n    c.wait()"),
    ("expression dropped", "h = c.wait()", "h = _as.exit(1)"),
    ("another object's method", "w()", "_other.enter(1)\nw()"),
    ("another parameter", "def k(a): w()", "def k(a, prof=None): w()"),
    ("handlers kept", "w()", "try:\n    w()\nexcept E:\n    pass\nfinally:\n    _as.release()"),
]


@pytest.mark.parametrize(("original", "stamped"), [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_stamps_are_taken_out(original: str, stamped: str) -> None:
    assert difference(original.encode(), (HEAD + stamped).encode()) == ""


@pytest.mark.parametrize(("original", "stamped"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_changes_of_the_program_are_found(original: str, stamped: str) -> None:
    assert difference(original.encode(), (HEAD + stamped).encode())


def test_head_after_docstring_and_future_import() -> None:
    original = '"""Doc."""\nfrom __future__ import annotations\nimport math\n'
    stamped = original.replace("import math\n", f"{HEAD}import math\n")
    assert difference(original.encode(), stamped.encode()) == ""


def test_the_innermost_difference_is_named() -> None:
    original = "def f():\n    if x:\n        a()\n    else:\n        b()\n"
    stamped = dedent(original).replace("b()", "c()")
    assert (
        difference(original.encode(), stamped.encode()) == "Expr and Expr at lines 5 and 5 (original, stamped) differ"
    )
