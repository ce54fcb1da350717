# SPDX-License-Identifier: Apache-2.0
"""One source through the front end: what is refused and where, and what the manifest's part of it says."""

from __future__ import annotations

import hashlib
import warnings

import pytest

import autostamp
from autostamp.diagnostics import AutostampError, Diagnostic, render
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.site import Shape
from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.cutedsl import Stamped, instrument

HEAD = "import cutlass.cute as cute\n"


def stamp(text: str, options: InstrumentOptions | None = None) -> Stamped:
    return instrument((HEAD + text).encode(), "dir/kernel.py", options)


def finding_of(data: bytes) -> Diagnostic:
    with pytest.raises(AutostampError) as caught:
        instrument(data, "dir/kernel.py")
    return caught.value.diagnostic


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("def f(:\n    p.wait()\n", 2, 7),
        ("def f(p):\n    p.wait(\n", 3, 11),
        ("x = 'é' p.wait()\n", 2, 9),
        ("def f(p):\n\tp.wait(\n\t1 +)\n", 4, 5),
        ("print 1\np.wait()\n", 2, 1),
        ("def f(p):\r\n    x = 1 1; p.wait()\r\n", 3, 11),
        ("x = '\u2028\x0c'\ny = 1 1; p.wait()\n", 3, 7),
    ],
)
def test_what_is_not_python_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    finding = finding_of((HEAD + text).encode())
    assert finding.code == "AS1001"
    assert finding.position is not None
    assert (finding.position.line, finding.position.column) == (line, column)
    shown = render(finding).splitlines()
    assert shown[0].startswith(f"dir/kernel.py:{line}:{column}: AS1001 ")
    assert shown[1].split(" | ")[1].strip() == (HEAD + text).split("\n")[line - 1].strip()
    assert set(shown[2].split(" | ")[1].strip()) == {"^"}


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\0\ndef f(p):\n    p.wait()\n",
        "def f(p):\n    p.wait()\n  p.wait()\n",
        "x = 1\rdef f(p):\r    p.wait()\r",
        f"x = {' + '.join('1' * 1500)}\ndef f(p):\n    p.wait()\n",
    ],
    ids=["null byte", "dedent", "lone carriage return", "nested too deeply"],
)
def test_what_libcst_cannot_read_is_refused(text: str) -> None:
    assert finding_of((HEAD + text).encode()).code == "AS1001"


def test_syntax_of_a_newer_python_is_not_our_fault() -> None:
    text = (HEAD + "def f(p):\n    p.wait()\ntype X = int\n").encode()
    try:
        compile(text, "x", "exec")
    except SyntaxError:
        assert finding_of(text).code == "AS1001"
    else:
        assert instrument(text, "x").is_changed


@pytest.mark.parametrize("data", [b"import cutlass\nx = '\xe9'\ndef f(p):\n    p.wait()\n", b"cute wait \xff"])
def test_what_is_not_utf_8_is_refused(data: bytes) -> None:
    finding = finding_of(data)
    assert finding.code == "AS1002"
    assert "dir/kernel.py" in finding.message


def test_warnings_about_the_authors_code_are_not_ours() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(stamp("def f(p):\n    x = '\\d'\n    p.wait()\n").file.sites) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"# nothing\n",
        b"x = 1\n",
        b"def f(p):\n    p.wait()\n",
        b"cute = 1\n",
        b"\xff\xfe",
        b"def broken(:\n",
        b"cutlass = broken(\n",
    ],
)
def test_a_file_without_the_dsl_or_without_a_call_is_left_alone(data: bytes) -> None:
    stamped = instrument(data, "other.py")
    assert stamped.text == data
    assert not stamped.is_changed
    assert (stamped.file.sites, stamped.file.skips, stamped.file.kernels) == ((), (), ())


def test_the_manifest_describes_the_file() -> None:
    stamped = instrument((HEAD + "def f(p):\n    p.wait()\n").encode(), "dir/kernel.py", module="pkg.kernel")
    digest = hashlib.sha256(stamped.original).hexdigest()
    assert (stamped.file.path, stamped.file.module) == ("dir/kernel.py", "pkg.kernel")
    assert (stamped.file.sha256, stamped.file.key) == (digest, digest[:16])
    assert f'stamper("{digest[:16]}")'.encode() in stamped.text


def test_the_manifest_describes_a_site() -> None:
    text = (
        "class K:\n"
        "    @cute.kernel\n"
        "    def kernel(self, pipe, state, n):\n"
        "        warp_idx = cute.arch.warp_idx()\n"
        "        if warp_idx == self.load_warp_id:\n"
        "            for k in range(n):\n"
        "                while n:\n"
        "                    with cute.arch.elect_one():\n"
        "                        token = pipe.producer_acquire( state )\n"
    )
    (site,) = stamp(text).file.sites
    start = (HEAD + text).index("pipe.producer_acquire")
    assert (site.span.start, site.span.end) == (start, start + len("pipe.producer_acquire( state )"))
    assert (site.span.line, site.span.column) == (10, 33)
    assert (site.number, site.text) == (1, "pipe.producer_acquire( state )")
    assert (site.method, site.kind, site.side) == ("producer_acquire", Kind.WAIT, Side.EMPTY)
    assert (site.stage_from, site.shape) == (StageFrom.STATE, Shape.ASSIGNED)
    assert (site.function, site.barrier, site.role) == ("K.kernel", "pipe", "load")
    assert (site.loop_depth, site.guard) == (2, "cute.arch.elect_one()")


SHAPES = [
    ("p.wait()", Shape.STATEMENT),
    ("h = p.wait()", Shape.ASSIGNED),
    ("h: int = p.wait()", Shape.ASSIGNED),
    ("while not p.try_wait(): pass", Shape.WAIT_LOOP),
    ("f(p.wait())", Shape.ARGUMENT),
    ("p.wait().use()", Shape.CHAINED),
    ("if p.wait(): pass", Shape.CONDITION),
    ("while p.wait().ok: pass", Shape.CONDITION),
    ("return p.wait()", Shape.RETURNED),
    ("f = lambda: p.wait()", Shape.LAMBDA),
    ("h = 1 + p.wait()", Shape.EXPRESSION),
    ("h = [p.wait()]", Shape.EXPRESSION),
]


@pytest.mark.parametrize(("statement", "shape"), SHAPES, ids=[case[0] for case in SHAPES])
def test_the_shape_of_a_site_is_told(statement: str, shape: Shape) -> None:
    (site,) = stamp(f"def f(p):\n    {statement}\n").file.sites
    assert site.shape is shape
    assert site.kind is Kind.WAIT


def test_kernels_and_whether_their_launch_is_threaded() -> None:
    file = stamp(
        "@cute.kernel\ndef a(x):\n    cute.arch.sync_threads()\n\n"
        "class K:\n    @cute.kernel\n    def b(self, x):\n        cute.arch.sync_threads()\n\n"
        "    def run(self, x):\n        self.b(x).launch(grid=[1, 1, 1], block=[1, 1, 1])\n\n"
        "def run(x):\n    function = a\n    function(x).launch(grid=[1, 1, 1], block=[1, 1, 1])\n"
    ).file
    assert [(kernel.name, kernel.line, kernel.is_threaded) for kernel in file.kernels] == [
        ("a", 3, False),
        ("K.b", 8, True),
    ]


def test_a_selection_keeps_the_numbers_of_sites() -> None:
    text = "def f(p, q):\n    p.wait()\n    q.wait()\n    p.release()\n"
    stamped = stamp(text, InstrumentOptions(Selection(only=("barrier=q", "kind=signal"))))
    assert [(site.number, site.barrier) for site in stamped.file.sites] == [(2, "q"), (3, "p")]
    assert [(skip.code, skip.span.line) for skip in stamped.file.skips] == [("AS2106", 3)]
    assert b"\n    p.wait()\n    _as.enter(2, q); q.wait(); _as.exit(2)\n    _as.open(3, p)" in stamped.text


def test_nothing_selected_leaves_the_file_alone_unless_it_has_a_kernel() -> None:
    text = "def f(p):\n    p.wait()\n"
    stamped = stamp(text, InstrumentOptions(Selection(skip=("kind=*",))))
    assert not stamped.is_changed
    assert [skip.code for skip in stamped.file.skips] == ["AS2106"]


def test_rows_of_the_user_win() -> None:
    own = (
        SyncOp("MyBarrier", "park", Kind.WAIT, Side.MBARRIER, StageFrom.INDEX),
        SyncOp("mylib.sync", "poke", Kind.SIGNAL, Side.FLAG, group="flag"),
        SyncOp("MyBarrier", "consumer_wait", Kind.SIGNAL, Side.EMPTY, StageFrom.STATE),
    )
    text = "def f(b, sync, s):\n    b.park(s)\n    sync.poke()\n    b.consumer_wait(s)\n"
    stamped = stamp(text, InstrumentOptions(extra_ops=own))
    assert stamped.text.decode().split("\n")[2:5] == [
        "    _as.enter(1, b, index=s); b.park(s); _as.exit(1)",
        "    _as.open(2, text='flag'); sync.poke(); _as.signal(2)",
        "    _as.open(3, b, state=s); b.consumer_wait(s); _as.signal(3)",
    ]
    assert next((site.owner, site.side) for site in stamped.file.sites) == ("MyBarrier", Side.MBARRIER)


def test_instrument_source_is_public() -> None:
    data = (HEAD + "def f(p):\n    p.wait()\n").encode()
    assert autostamp.instrument_source(data).text == instrument(data, "<string>").text


def test_a_stamped_file_with_other_options_is_stamped_anew() -> None:
    data = (HEAD + "def f(p):\n    p.wait()\n    p.release()\n").encode()
    waits = InstrumentOptions(Selection(only=("kind=wait",)))
    assert instrument(instrument(data, "a.py").text, "a.py", waits).text == instrument(data, "a.py", waits).text


def test_a_stamped_file_that_was_edited_is_refused() -> None:
    stamped = instrument((HEAD + "def f(p):\n    p.wait()\n").encode(), "a.py").text
    assert finding_of(stamped.replace(b"p.wait()", b"p.wait(1)")).code == "AS3002"
    assert finding_of(stamped + b"x = 1\n").code == "AS3002"
