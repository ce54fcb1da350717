# SPDX-License-Identifier: Apache-2.0
"""What the project promises about its own shape: sizes, names, licence lines, links and contracts."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("passes", "runtime", "kernels")
DATA = ("tests/cases", "tests/fixtures", "tests/golden", "kernels/cutedsl/recorded", "kernels/cuda/recorded")
MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 80
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _sources() -> list[Path]:
    """Every Python source once: the linked folders by their real names."""
    found = []
    for folder in ("autostamp", *LINKED, "tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT)
            is_link = (
                folder == "autostamp" and len(inside.parts) > 1 and (ROOT / "autostamp" / inside.parts[1]).is_symlink()
            )
            if not is_link and not inside.as_posix().startswith(DATA):
                found.append(inside)
    return found


SOURCES = _sources()
SHIPPED = [path for path in SOURCES if path.parts[0] not in ("tests", "benchmarks")]


CUDA = [
    path.relative_to(ROOT)
    for folder in LINKED
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".cuh", ".cu", ".h") and not path.relative_to(ROOT).as_posix().startswith(DATA)
]


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def name(path: Path) -> str:
    return path.as_posix()


def test_sources_were_found():
    assert Path("autostamp/__init__.py") in SOURCES
    assert Path("runtime/layout.py") in SOURCES
    assert not any(path.as_posix().startswith("autostamp/runtime/") for path in SOURCES)
    assert Path("runtime/cuda/autostamp_host.cuh") in CUDA


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_first_line_is_the_licence(path):
    lines = text(path).splitlines()[:2]
    lines = lines[1:] if lines[0].startswith("#!") else lines
    assert lines[0] == "# SPDX-License-Identifier: Apache-2.0"


@pytest.mark.parametrize("path", SHIPPED, ids=name)
def test_module_and_functions_are_short(path):
    source = text(path)
    assert source.count("\n") <= MAX_MODULE_LINES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("path", CUDA, ids=name)
def test_cuda_file_is_short(path):
    assert text(path).count("\n") <= MAX_MODULE_LINES


@pytest.mark.parametrize("path", CUDA, ids=name)
def test_first_line_of_a_cuda_file_is_the_licence(path):
    assert text(path).startswith("// SPDX-License-Identifier: Apache-2.0\n")


@pytest.mark.parametrize("path", SHIPPED, ids=name)
def test_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(text(path)))


def test_no_module_has_a_vague_name():
    assert [path for path in SOURCES if VAGUE & {part.removesuffix(".py") for part in path.parts}] == []


@pytest.mark.parametrize("folder", LINKED)
def test_folder_is_linked_into_the_package(folder):
    link = ROOT / "autostamp" / folder
    if not link.is_symlink():
        pytest.skip("not a checkout: archives hold the files themselves")
    assert link.readlink() == Path("..", folder)
    assert (ROOT / folder / "__init__.py").is_file()


def test_no_source_imports_a_linked_folder_by_its_bare_name():
    bare = re.compile(rf"^\s*(?:from|import)\s+(?:{'|'.join(LINKED)})\b", re.MULTILINE)
    assert [path for path in SOURCES if bare.search(text(path))] == []


def test_every_folder_of_the_package_has_an_import_contract():
    packages = {path.name for path in (ROOT / "autostamp").iterdir() if (path / "__init__.py").is_file()}
    contracts = CONFIG["tool"]["importlinter"]["contracts"]
    covered = {module.removeprefix("autostamp.") for contract in contracts for module in contract["source_modules"]}
    assert packages - {"cli"} == covered


def test_contracts_forbid_what_the_table_does_not_allow():
    allowed = {
        "model": set(),
        "diagnostics": {"model"},
        "passes": {"model", "diagnostics"},
        "runtime": {"model", "diagnostics"},
        "analysis": {"model"},
        "predict": {"model", "diagnostics"},
        "report": {"model"},
        "hooks": {"passes", "runtime", "model", "diagnostics"},
        "kernels": {"runtime", "model", "diagnostics"},
    }
    for contract in CONFIG["tool"]["importlinter"]["contracts"]:
        (source,) = (module.removeprefix("autostamp.") for module in contract["source_modules"])
        ours = {
            module.removeprefix("autostamp.")
            for module in contract["forbidden_modules"]
            if module.startswith("autostamp.")
        }
        assert ours == {*allowed, "cli"} - allowed[source] - {source}, source


def test_every_ignored_rule_has_its_reason():
    section = text(Path("pyproject.toml")).split("\nignore = [\n")[1].split("\n]\n")[0]
    assert [line for line in section.splitlines() if not re.fullmatch(r'\s+"[A-Z]+\d+",\s+# .{8,}', line)] == []


def test_wheel_holds_one_package():
    assert CONFIG["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["autostamp"]
    assert CONFIG["tool"]["hatch"]["build"]["dev-mode-exact"] is True


@pytest.mark.parametrize("path", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "docs/how-it-works.md"])
def test_document_is_there(path):
    assert (ROOT / path).stat().st_size > 0


def _documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", _documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_lead_somewhere(path):
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    broken = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert broken == []
