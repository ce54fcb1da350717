# SPDX-License-Identifier: Apache-2.0
"""Reading nvcc's command line. What each option means was read in `nvcc --help` of 13.0 and tried with `nvcc -dryrun`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.hooks import make_rules
from autostamp.hooks.nvcc_command import NvccCommand, SearchFolder, is_nvcc
from autostamp.hooks.nvcc_options import FLAGS, VALUED, items_of, split_response


def read(line: str, **environment: str) -> NvccCommand:
    return NvccCommand.of(line.split(), environment)


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("-c a.cu", [("c", ""), ("", "a.cu")]),
        ("-o x.o a.cu", [("o", "x.o"), ("", "a.cu")]),
        ("-o=x.o", [("o", "x.o")]),
        ("--output-file x.o", [("o", "x.o")]),
        ("--output-file=x.o", [("o", "x.o")]),
        ("-Iinc -I inc -I=inc --include-path inc", [("I", "inc")] * 4),
        ("-DX=1 -D X=1 -D=X=1 --define-macro=X=1", [("D", "X=1")] * 4),
        ("-isystem=/opt/x -isystem /opt/x --system-include=/opt/x", [("isystem", "/opt/x")] * 3),
        ("-O3 -t4 -lfoo -Llib", [("O", "3"), ("t", "4"), ("l", "foo"), ("L", "lib")]),
        ("-lineinfo -lib -link -lto -ltoir", [(name, "") for name in ("lineinfo", "lib", "link", "lto", "ltoir")]),
        ("-Ofc max -time - -ldir d", [("Ofc", "max"), ("time", "-"), ("ldir", "d")]),
        ("-gencode=arch=compute_90a,code=sm_90a", [("gencode", "arch=compute_90a,code=sm_90a")]),
        ("-rdc=true -rdc true --relocatable-device-code=true", [("rdc", "true")] * 3),
        ("-x cu --x=cu -x=cu", [("x", "cu")] * 3),
        ("-Xcompiler -Wall,-fPIC -Xptxas=-v", [("Xcompiler", "-Wall,-fPIC"), ("Xptxas", "-v")]),
        ("-MD -MF x.d -MT x.o -MP", [("MD", ""), ("MF", "x.d"), ("MT", "x.o"), ("MP", "")]),
        ("--generate-dependencies-with-compile --dependency-output x.d", [("MD", ""), ("MF", "x.d")]),
        ("-iquoteinc --use_fast_math -G", [("iquoteinc", ""), ("--use_fast_math", ""), ("G", "")]),
        ("-", [("", "-")]),
    ],
)
def test_items(line, items):
    found = list(items_of(line.split()))
    assert [(item.name, item.value) for item in found] == items
    assert [word for item in found for word in item.words] == line.split()


WORDS = st.one_of(
    st.sampled_from([f"-{name}" for name in (*VALUED, *FLAGS)]),
    st.sampled_from([f"--{name}" for name in (*VALUED.values(), *FLAGS.values())]),
    st.sampled_from(["a.cu", "b.cpp", "c.o", "-", "-Iinc", "-DX", "-x=cu", "--x=c++", "-O3", "-Xcompiler=-Wall"]),
    st.text(min_size=1),
)


@given(st.lists(WORDS))
def test_every_word_belongs_to_one_item(words):
    assert [word for item in items_of(words) for word in item.words] == words


@given(st.lists(WORDS))
def test_a_command_that_is_not_changed_keeps_its_words(words):
    command = NvccCommand.of(["nvcc", *words], {})
    assert list(command.words) == ["nvcc", *words]
    assert command.rewritten([], {}) == list(command.words)


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("nvcc -c a.cu", ("a.cu",)),
        ("nvcc a.cu b.cu c.cpp d.o -o x", ("a.cu", "b.cu")),
        ("nvcc -x cu -c a.cpp", ("a.cpp",)),
        ("nvcc -c a.cu.cpp", ()),
        ("nvcc -x cu -c a.cu.cpp", ("a.cu.cpp",)),
        ("nvcc -x cu a.cpp b.o libc.a d.so", ("a.cpp",)),
        ("nvcc -x c++ -c a.cu", ()),
        ("nvcc -x cu -x c++ -c a.cu", ()),  # "the last value of this option was used"
        ("nvcc -x c++ -x cu -c a.cu", ("a.cu",)),
        ("nvcc -c a.cpp", ()),
        ("nvcc -c a.ptx", ()),
        ("nvcc -x cu -c -", ()),
        ("nvcc -o a.cu b.o", ()),
        ("nvcc -include a.cu -c b.cpp", ()),
        ("ccache nvcc -c a.cu", ("a.cu",)),
        ("ccache /opt/cuda/bin/nvcc -cubin a.cu", ("a.cu",)),
    ],
)
def test_sources(line, sources):
    assert read(line).sources == sources


def test_language_may_stand_in_the_environment():
    assert read("nvcc -c a.cpp", NVCC_APPEND_FLAGS="-x cu").sources == ("a.cpp",)
    assert read("nvcc -c a.cu", NVCC_APPEND_FLAGS="-x c++").sources == ()
    assert read("nvcc -x cu -c a.cu", NVCC_PREPEND_FLAGS="-x c++").sources == ("a.cu",)


@pytest.mark.parametrize(
    "line",
    [
        "nvcc --version",
        "nvcc -V",
        "nvcc --help",
        "nvcc",
        "nvcc a.o b.o -o x",
        "nvcc -dlink a.o -o x.o",
        "nvcc --device-link a.o -o x.o",
        "nvcc -E a.cu",
        "nvcc --preprocess a.cu",
        "nvcc -M a.cu",
        "nvcc -MM a.cu",
        "nvcc --generate-dependencies a.cu",
        "nvcc -dryrun -c a.cu",
        "nvcc --clean-targets -c a.cu",
        "nvcc -fdevice-syntax-only -c a.cu",
        "nvcc -x c++ -c a.cu",
        "nvcc -c a.cpp",
        "nvcc -lib a.o -o x.a",
        "nvcc --list-gpu-arch",
        "nvcc --list-gpu-code",
        "nvcc -x cu -c -",
        "nvcc -c a.cu -o",
        "nvcc -cubin a.ptx",
    ],
)
def test_commands_that_are_left_alone(line):
    assert read(line).why_unchanged()


@pytest.mark.parametrize(
    "line",
    [
        "nvcc -c a.cu",
        "nvcc a.cu -o x",
        "nvcc -dc a.cu",
        "nvcc -dw a.cu",
        "nvcc -cubin a.cu",
        "nvcc -ptx a.cu",
        "nvcc -fatbin a.cu",
        "nvcc -cuda a.cu",
        "nvcc -lib a.cu -o x.a",
        "nvcc -shared a.cu -o x.so",
        "nvcc -MD -c a.cu",
        "nvcc -MMD -MF a.d -c a.cu",
        "nvcc -v -keep -c a.cu",
        "nvcc -x cu -c a.cc",
    ],
)
def test_commands_that_compile_device_code(line):
    assert read(line).why_unchanged() == ""
    assert read(line).why_impossible() == ""


def test_response_files_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("inner.rsp").write_text("-isystem /opt/sys")
    Path("all.rsp").write_text('-Iinc "-I with space"\n-x cu --options-file inner.rsp\n')
    command = read("nvcc --options-file all.rsp -I last -c a.cpp")
    assert command.sources == ("a.cpp",)
    assert [found.folder for found in command.search_folders()] == ["inc", " with space", "last", "/opt/sys"]
    assert "all.rsp" in command.rewritten([], {})


def test_a_response_file_that_is_not_there_is_nvccs_to_report():
    assert read("nvcc --options-file nowhere.rsp -c a.cu").why_unchanged() == ""


def test_a_response_file_that_names_itself_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.rsp").write_text("-Iinc --options-file a.rsp")
    assert read("nvcc -optf a.rsp -c a.cu").sources == ("a.cu",)


def test_sources_that_are_hidden_cannot_be_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("all.rsp").write_text("a.cu")
    for command in (read("nvcc -c --options-file all.rsp"), read("nvcc -c", NVCC_APPEND_FLAGS="a.cu")):
        assert command.why_unchanged() == ""
        assert "response file" in command.why_impossible()
    assert "precompiled" in read("nvcc -c --use-pch=x.pch a.cu").why_impossible()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-Iinc -DX\n-DY\t-DZ", ["-Iinc", "-DX", "-DY", "-DZ"]),
        ('"-DX=a b" -DZ', ["-DX=a b", "-DZ"]),
        (r"-DX=a\ b -DZ", ["-DX=a b", "-DZ"]),
        ('-DY="q r" -DZ', ["-DY=q r", "-DZ"]),
        ('"-DX=a"b -DZ', ["-DX=ab", "-DZ"]),
        (r"-DX=a\nb", ["-DX=anb"]),
        ("-DX=it's -DZ", ["-DX=it's", "-DZ"]),
        ("", []),
    ],
)
def test_words_of_a_response_file(text, words):
    # Each line was given to `nvcc -dryrun --options-file` of 13.0.88; these are the macros that it passed on.
    assert split_response(text) == words


def test_search_folders_of_every_kind():
    line = "nvcc -I a,b -isystem=c -Xcompiler -iquote,d,-Ie -Xcompiler=-idirafterf -iquoteg --include-path h -c x.cu"
    assert set(read(line).search_folders()) == {
        SearchFolder("-I", "a"),
        SearchFolder("-I", "b"),
        SearchFolder("-I", "h"),
        SearchFolder("-I", "e"),
        SearchFolder("-isystem", "c"),
        SearchFolder("-iquote", "d"),
        SearchFolder("-iquote", "g"),
        SearchFolder("-idirafter", "f"),
    }


def test_folders_of_one_kind_keep_their_order():
    found = [each.folder for each in read("nvcc -Iz -I y,x --include-path=w -c a.cu").search_folders()]
    assert found == ["z", "y", "x", "w"]


def test_rewritten_puts_words_first_and_replaces_files():
    command = read("ccache nvcc -std=c++17 -Iinc -include cfg.h,other.h -c -o a.o src/a.cu -DSRC=src/a.cu")
    words = command.rewritten(["-DAUTOSTAMP=1"], {"src/a.cu": "/s/src/a.cu", "cfg.h": "/s/cfg.h"})
    assert " ".join(words) == (
        "ccache nvcc -DAUTOSTAMP=1 -std=c++17 -Iinc -include /s/cfg.h,other.h -c -o a.o /s/src/a.cu -DSRC=src/a.cu"
    )


def test_query_asks_for_the_sources_alone():
    command = read("nvcc -O3 -Iinc -MMD -MP -MT a.o -MF a.d -o a.o -keep -time t.csv a.cu b.cpp c.o -lfoo")
    words = command.query(Path("rules"), ["-DZ"])
    assert " ".join(words) == "nvcc -O3 -Iinc a.cu -lfoo -DZ -M -MF rules"


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("nvcc -c a.cu -o out/a.o", []),
        ("nvcc -c -MD -MF deps/a.d a.cu -o out/a.o", ["deps/a.d"]),
        ("nvcc -c -MD a.cu -o out/a.o", ["out/a.d"]),
        ("nvcc -c -MMD src/a.cu", ["a.d"]),
        ("nvcc -c -MD src/a.cu src/b.cu -odir od", ["od/a.d", "od/b.d"]),
        ("nvcc -MD src/a.cu -o x.exe", ["x.d"]),
    ],
)
def test_dependency_files(line, files):
    assert read(line).dependency_files() == [Path(file) for file in files]


@pytest.mark.parametrize(
    ("line", "architectures"),
    [
        ("nvcc -c a.cu", ()),
        ("nvcc -arch=sm_90a -c a.cu", ("900",)),
        ("nvcc -arch native -c a.cu", ()),
        (
            "nvcc -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_100a,code=[sm_100a,compute_100a] a.cu",
            ("1000", "800"),
        ),
    ],
)
def test_architectures(line, architectures):
    assert read(line).architectures == architectures


def test_kinds_of_output():
    assert read("nvcc -cubin a.cu").is_device_only
    assert read("nvcc --ptx a.cu").is_device_only
    assert not read("nvcc -c a.cu").is_device_only
    assert read("nvcc -dc a.cu").is_relocatable
    assert read("nvcc -rdc=true -c a.cu").is_relocatable
    assert not read("nvcc -rdc=true -rdc=false -c a.cu").is_relocatable
    assert read("nvcc -run a.cu").runs_the_program


def test_defines():
    assert read("nvcc -DAUTOSTAMP -c a.cu").defines("AUTOSTAMP")
    assert read("nvcc -DAUTOSTAMP=0 -c a.cu").defines("AUTOSTAMP")
    assert not read("nvcc -DAUTOSTAMP_X -c a.cu").defines("AUTOSTAMP")


def test_what_goes_by_the_name_of_nvcc():
    assert [is_nvcc(name) for name in ("nvcc", "/opt/cuda/bin/nvcc", "nvcc-13", "clang++", "/nvcc/g++")] == [
        True,
        True,
        True,
        False,
        False,
    ]


RULES = r"""k.o : src/k\ x.cu \
    /usr/include/stdio.h \
    /c/files/p/a\#b.h \
    /c/include/autostamp.cuh \
    inc/f$$.h
"""


def test_prerequisites():
    assert make_rules.prerequisites(RULES) == [
        "src/k x.cu",
        "/usr/include/stdio.h",
        "/c/files/p/a#b.h",
        "/c/include/autostamp.cuh",
        "inc/f$.h",
    ]


def test_rules_in_nvccs_form_read_and_write_alike():
    assert "".join(map(str, make_rules.read(RULES))) == RULES
    with_empty = "k.o : k.cu \\\n    b.h\n\nb.h:\n"
    assert "".join(map(str, make_rules.read(with_empty))) == with_empty


def test_rules_in_gccs_form():
    # As `g++ -MM -MP` writes them.
    rules = "k.o: k.cu b.h \\\n c\\ d.h\nb.h:\nc\\ d.h:\n"
    assert make_rules.prerequisites(rules) == ["k.cu", "b.h", "c d.h"]
    assert [rule.head for rule in make_rules.read(rules)] == ["k.o:", "b.h:", "c\\ d.h:"]


COPIED = """k.o : /c/k.cu \\
    /c/ours.cuh \\
    /usr/include/cstring \\
    k.cu \\
    /c/b.h \\
    b.h \\
    /c/a.h \\
    a.h

/c/ours.cuh:

k.cu:

/c/b.h:

b.h:

/c/a.h:

a.h:
"""


def test_restored_rules_are_those_of_the_original():
    # What nvcc 13 lists for copies that begin with `#line 1 "k.cu"`: each copy, and the name that its #line gives it.
    listed = ["k.cu", "a.h", "/usr/include/stdio.h", "b.h"]
    restored = make_rules.restored(COPIED, lambda name: name.removeprefix("/c/"), listed)
    assert restored == "k.o : k.cu \\\n    a.h \\\n    b.h\n\na.h:\n\nb.h:\n"


def test_a_target_with_spaces_is_no_prerequisite():
    assert make_rules.prerequisites("my file.o : a.cu \\\n    b.h\nc.o : c.cu\n") == ["a.cu", "b.h", "c.cu"]


@given(st.text(alphabet=st.sampled_from("ab /.#$\\:-"), min_size=1).filter(lambda name: not name.isspace()))
def test_quoting_round_trips(name):
    # GCC doubles backslashes only in front of white space, so a name that ends in one, or has one before `#`, is not unique.
    if "\\" not in name:
        assert make_rules.unquoted(make_rules.quoted(name)) == name
