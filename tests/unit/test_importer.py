# SPDX-License-Identifier: Apache-2.0
"""The import hook on small packages that mention the DSL and need none of it."""

from __future__ import annotations

import importlib
import inspect
import itertools
import py_compile
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.hooks.importer import Loaded, StampingFinder, StampingLoader
from autostamp.hooks.session import Session
from autostamp.hooks.targets import Target

NAMES = (f"hooked{number}" for number in itertools.count())
HELPER = """\
'For cutlass kernels.'
class Pipe:
    def consumer_wait(self, state):
        return state + 1


def run(state):
    pipe = Pipe()
    token = pipe.consumer_wait(state)
    return token
"""
STAMPED_LINE = "    _as.enter(1, pipe, state=state); token = pipe.consumer_wait(state); _as.exit(1)\n"
PLAIN = "def run(state):\n    return state\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path; what was imported from it is forgotten afterwards."""
    before = set(sys.modules)
    hooks = list(sys.meta_path)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.meta_path[:] = hooks
    for name in set(sys.modules) - before:
        if name.startswith("hooked"):
            del sys.modules[name]


@pytest.fixture
def name() -> str:
    """A module name that no other test has."""
    return next(NAMES)


@pytest.fixture
def hook(tmp_path: Path) -> Callable[..., Loaded]:
    def install(*targets: str) -> Loaded:
        loaded = Loaded(tmp_path / "generated")
        sys.meta_path.insert(0, StampingFinder([Target.of(text) for text in targets], loaded))
        return loaded

    return install


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    importlib.invalidate_caches()
    return path


def test_a_target_is_stamped_as_it_loads(root, name, hook, tmp_path):
    file = write(root / f"{name}.py", HELPER)
    loaded = hook(name)
    module = importlib.import_module(name)
    assert module.run(3) == 4
    assert module.__file__ == module.__spec__.origin == str(file)
    assert isinstance(module.__loader__, StampingLoader)
    code = module.run.__code__
    generated = Path(code.co_filename)
    assert generated.is_relative_to(tmp_path / "generated")
    assert generated.name == file.name
    assert (code.co_firstlineno, generated.read_bytes()) == (7, loaded.stamped[code.co_filename].text)
    assert file.read_text(encoding="utf-8") == HELPER
    assert (loaded.met, loaded.modules, loaded.findings) == ({name}, {name}, [])
    assert loaded.stamped[code.co_filename].file.module == name


def test_what_inspect_reads_is_the_stamped_text(root, name, hook):
    write(root / f"{name}.py", HELPER)
    hook(name)
    module = importlib.import_module(name)
    lines, first = inspect.getsourcelines(module.run)
    assert (first, lines[2]) == (7, STAMPED_LINE)


def test_a_line_of_the_stamped_file_leads_to_the_authors_line(root, name, hook):
    loop = "while not bar.try_wait(0):\n        pass\n    raise ValueError(bar)\n"
    write(root / f"{name}.py", f"# cutlass\ndef spin(bar):\n    {loop}")
    loaded = hook(name)
    module = importlib.import_module(name)

    class Bar:
        def try_wait(self, phase: int) -> bool:
            return True

    with pytest.raises(ValueError, match="Bar") as caught:
        module.spin(Bar())
    inner = caught.traceback[-1]
    stamped_line = inner.lineno + 1
    assert stamped_line == 7  # after a line for the import and one before the loop
    assert loaded.original_line(str(inner.path), stamped_line) == 5
    assert loaded.original_line("/elsewhere.py", 9) == 9


def test_a_compiled_file_of_an_earlier_import_is_not_used(root, name, hook):
    file = write(root / f"{name}.py", HELPER)
    compiled = Path(py_compile.compile(str(file), doraise=True) or "")
    before = compiled.read_bytes()
    hook(name)
    module = importlib.import_module(name)
    assert hasattr(module, "_as")
    assert compiled.read_bytes() == before


def test_no_compiled_file_is_left_for_later_imports(root, name, hook):
    write(root / f"{name}.py", HELPER)
    hook(name)
    importlib.import_module(name)
    assert list(root.rglob("*.pyc")) == []
    del sys.modules[name]
    del sys.meta_path[0]
    assert not hasattr(importlib.import_module(name), "_as")


def test_other_modules_are_left_alone(root, name, hook):
    write(root / f"{name}.py", HELPER)
    other = write(root / f"{name}other.py", HELPER)
    loaded = hook(name)
    module = importlib.import_module(f"{name}other")
    assert not hasattr(module, "_as")
    assert module.run.__code__.co_filename == str(other)
    assert (loaded.met, loaded.stamped) == (set(), {})


def test_a_target_with_nothing_to_stamp_is_met_and_loads_as_ever(root, name, hook):
    file = write(root / f"{name}.py", PLAIN)
    loaded = hook(name)
    module = importlib.import_module(name)
    assert (module.run(3), module.run.__code__.co_filename) == (3, str(file))
    assert (loaded.met, loaded.stamped, loaded.modules) == ({name}, {}, set())


def test_a_package_is_stamped_with_all_below_it(root, name, hook):
    write(root / name / "__init__.py", f"from {name} import inner\n")
    write(root / name / "inner.py", HELPER)
    write(root / name / "deep" / "__init__.py", HELPER)
    write(root / name / "deep" / "er.py", HELPER)
    write(root / f"{name}_more" / "__init__.py", HELPER)
    loaded = hook(name)
    package = importlib.import_module(name)
    for module in (package.inner, importlib.import_module(f"{name}.deep"), importlib.import_module(f"{name}.deep.er")):
        assert module.run(1) == 2
        assert hasattr(module, "_as")
    assert not hasattr(importlib.import_module(f"{name}_more"), "_as")
    assert list(package.__path__) == [str(root / name)]
    assert loaded.modules == {f"{name}.inner", f"{name}.deep", f"{name}.deep.er"}


def test_a_part_of_a_package(root, name, hook):
    write(root / name / "__init__.py", HELPER)
    write(root / name / "a.py", HELPER)
    write(root / name / "ab.py", HELPER)
    loaded = hook(f"{name}.a")
    for part in ("", ".a", ".ab"):
        importlib.import_module(f"{name}{part}")
    assert loaded.modules == {f"{name}.a"}


def test_a_package_without_init(root, name, hook):
    write(root / name / "a.py", HELPER)
    loaded = hook(name)
    importlib.import_module(f"{name}.a")
    assert loaded.modules == {f"{name}.a"}


def test_a_file_and_a_folder_as_targets(root, name, hook, monkeypatch):
    write(root / name / "__init__.py", "")
    write(root / name / "a.py", HELPER)
    write(root / name / "deep" / "b.py", HELPER)
    write(root / f"{name}b.py", HELPER)
    monkeypatch.chdir(root)
    loaded = hook(f"{name}/a.py", f"./{name}/deep")
    for part in (".a", ".deep.b", "b"):
        importlib.import_module(f"{name}{part}")
    assert loaded.modules == {f"{name}.a", f"{name}.deep.b"}
    assert loaded.met == {f"{name}/a.py", f"./{name}/deep"}


def test_a_link_to_a_file_is_the_file(root, name, hook, tmp_path):
    file = write(tmp_path / "elsewhere" / "real.py", HELPER)
    (root / f"{name}.py").symlink_to(file)
    loaded = hook(str(file))
    importlib.import_module(name)
    assert loaded.modules == {name}


def test_a_target_that_is_not_python_fails_as_it_would_without_us(root, name, hook):
    write(root / f"{name}.py", "# cutlass\ndef f(p):\n    p.wait(]\n")
    loaded = hook(name)
    with pytest.raises(SyntaxError) as caught:
        importlib.import_module(name)
    assert caught.value.filename == str(root / f"{name}.py")
    (finding,) = loaded.findings
    assert finding.code == "AS1001"
    assert finding.position is not None
    assert (finding.position.path, finding.position.line) == (str(root / f"{name}.py"), 3)


def test_a_target_in_another_encoding_loads_unstamped_and_is_reported(root, name, hook):
    write(root / f"{name}.py", b"# -*- coding: latin-1 -*-\n# cutlass\nx = '\xe9'\ndef f(p):\n    p.wait()\n")
    loaded = hook(name)
    assert importlib.import_module(name).x == "é"
    assert [finding.code for finding in loaded.findings] == ["AS1002"]


def test_two_targets_of_one_content_have_one_generated_file_each(root, name, hook):
    write(root / f"{name}a.py", HELPER)
    write(root / f"{name}b.py", HELPER)
    loaded = hook(f"{name}a", f"{name}b")
    for part in ("a", "b"):
        assert importlib.import_module(f"{name}{part}").run(1) == 2
    assert {Path(path).name for path in loaded.stamped} == {f"{name}a.py", f"{name}b.py"}


def test_a_module_of_an_import_from_elsewhere_is_found(root, name, hook):
    """The hook asks every other finder, also one that stands before the path finder."""
    file = write(root.parent / "far" / "module.py", HELPER)

    class Finder:
        @staticmethod
        def find_spec(fullname, path, target=None):
            return importlib.util.spec_from_file_location(fullname, file) if fullname == name else None

    sys.meta_path.insert(0, Finder)
    loaded = hook(name)
    assert importlib.import_module(name).run(1) == 2
    assert loaded.modules == {name}


def test_what_does_not_exist_stays_an_import_error(root, name, hook):
    hook(name)
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)


@pytest.mark.parametrize(
    ("text", "module", "origin", "expected"),
    [
        ("pkg", "pkg", "", True),
        ("pkg", "pkg.sub.mod", "/x/mod.py", True),
        ("pkg", "pkgs", "/x/pkgs.py", False),
        ("pkg.sub", "pkg", "", False),
        ("dir/file.py", "anything", "dir/file.py", True),
        ("dir/file.py", "anything", "dir/other.py", False),
        ("dir/file.py", "file", "", False),
        ("dir/", "anything", "dir/deep/file.py", True),
        ("dir/", "anything", "dirs/file.py", False),
        ("file.py", "file", "file.py", True),
    ],
)
def test_what_a_target_covers(text, module, origin, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Target.of(text).covers(module, origin and str(Path(origin).resolve())) is expected


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    opened = []

    def begin(*targets: str) -> Session:
        session = Session(targets, compile_only=True)
        session.open()
        opened.append(session)
        return session

    yield begin
    for session in opened:
        session.close()


def code_of(function: Callable[..., object], *arguments: str) -> tuple[str, str]:
    with pytest.raises(AutostampError) as caught:
        function(*arguments)
    return caught.value.diagnostic.code, caught.value.diagnostic.message


def test_a_target_that_was_imported_before_is_refused(root, name, open_session):
    write(root / name / "__init__.py", "")
    write(root / name / "kernel.py", HELPER)
    write(root / f"{name}_user.py", f"from {name} import kernel as k\n")
    importlib.import_module(f"{name}_user")
    code, message = code_of(open_session, f"{name}.kernel")
    assert (code, f"{name}.kernel was imported" in message) == ("AS5002", True)
    assert f"{name}_user" in message
    assert not any(isinstance(finder, StampingFinder) for finder in sys.meta_path)


def test_a_file_that_was_imported_before_is_refused(root, name, open_session):
    file = write(root / f"{name}.py", HELPER)
    importlib.import_module(name)
    assert code_of(open_session, str(file))[0] == "AS5002"


def test_a_target_that_is_never_imported_is_reported(root, name, open_session):
    write(root / f"{name}.py", HELPER)
    session = open_session(name, f"{name}x")
    assert [finding.code for finding in session.findings()] == ["AS5006", "AS5006"]
    importlib.import_module(name)
    (finding,) = session.findings()
    assert finding.message == f"{name}x was asked for but never imported"


def test_only_one_session_at_a_time(name, open_session):
    open_session(name)
    assert code_of(open_session, name)[0] == "AS5005"


def test_a_later_session_knows_what_an_earlier_one_loaded(root, name, open_session):
    write(root / name / "__init__.py", "")
    write(root / name / "kernel.py", HELPER)
    first = open_session(name)
    importlib.import_module(f"{name}.kernel")
    first.close()
    second = open_session(name)
    assert second.findings() == []
    assert [file.module for file in second.files() if file.module.startswith(name)] == [f"{name}.kernel"]


def test_closing_takes_the_hook_out(root, name, open_session):
    write(root / f"{name}.py", HELPER)
    session = open_session(name)
    session.close()
    session.close()
    assert not hasattr(importlib.import_module(name), "_as")


class OtherLoader(SourceFileLoader):
    """Another tool's rewriting loader."""


class OtherFinder(PathFinder):
    """Finds modules for it."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target)
        if spec is not None and spec.origin:
            spec.loader = OtherLoader(fullname, spec.origin)
        return spec


def test_a_target_that_another_hook_loads_is_said(root, name, hook, monkeypatch):
    (root / f"{name}.py").write_text(HELPER, encoding="utf-8")
    monkeypatch.setattr(sys, "meta_path", [OtherFinder, *sys.meta_path])
    loaded = hook(name)
    importlib.import_module(name)
    assert [(finding.code, "OtherLoader" in finding.message) for finding in loaded.findings] == [("AS5009", True)]
    assert loaded.stamped == {}
