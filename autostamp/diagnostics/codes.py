# SPDX-License-Identifier: Apache-2.0
"""The table of AS#### codes. Each has a page in docs/codes/.

AS1 parse, AS2 find (a call that is not stamped, and why), AS3 emit and safety, AS4 build, AS5 launch and session,
AS6 records and manifest, AS7 reports, AS9 usage and faults of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of every command."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    NO_DEVICE = 3


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """One code: what it says (a `str.format` template) and what the user can do about it."""

    code: str
    message: str
    help: str
    status: ExitStatus = ExitStatus.FINDINGS


_FINDINGS, _USAGE, _NO_DEVICE = ExitStatus.FINDINGS, ExitStatus.USAGE, ExitStatus.NO_DEVICE

_ROWS: tuple[tuple[str, str, str, ExitStatus], ...] = (
    ("AS1001", "{path} is not Python that libcst can parse: {detail}", "Fix the syntax error; nothing was written.", _FINDINGS),
    ("AS1002", "{path} is not UTF-8 text: {detail}", "Declare the encoding as UTF-8 or convert the file.", _FINDINGS),
    ("AS1003", "no kernel in {path}", "Give the file that holds the @cute.kernel, or the package, so that its helpers are stamped too.", _FINDINGS),
    ("AS1004", "no sync call in {path}", "Check that this is the right file; waits in helpers of other files need those files named too.", _FINDINGS),
    ("AS1005", "{path} has a name _as of its own, which is what stamps are called by", "Rename it in the file.", _FINDINGS),
    ("AS2101", "poll that never blocks: {call}", "Nothing to do: the wait that uses its token is stamped.", _FINDINGS),
    ("AS2102", "fence, which waits for no other warp: {call}", "Nothing to do.", _FINDINGS),
    ("AS2103", "forwarding wrapper {function}: its callers are stamped", "Nothing to do: stamping both would count one wait twice.", _FINDINGS),
    ("AS2104", "recorded by task scheduling, not executed here: {call}", "Nothing to do: no instruction is emitted at this line.", _FINDINGS),
    ("AS2105", "sync call in a position that cannot be stamped: {call}", "Put the call on a line of its own.", _FINDINGS),
    ("AS2106", "switched off by the selection: {call}", "Change --only / --skip or [tool.autostamp] to stamp it.", _FINDINGS),
    ("AS2107", "reference to {call} outside any function", "Take the reference inside the function that passes it on.", _FINDINGS),
    ("AS2108", "host code: {call} is not traced into a kernel", "Nothing to do.", _FINDINGS),
    ("AS2109", "switched off by a comment: {call}", "Remove `# autostamp: off` to stamp it.", _FINDINGS),
    ("AS2110", "{kernel} is not launched in its own file", "A session records it all the same; without one, pass mProf= at its launch by hand.", _FINDINGS),
    ("AS3001", "strip(stamp(x)) differs from x for {path}", "This is a fault of autostamp: please report it with the file.", _USAGE),
    ("AS3002", "{path} holds stamps but was edited after stamping", "Restore the stamped file as written, or stamp the original again.", _FINDINGS),
    ("AS3003", "the stamped text of {path} does not compile: {detail}", "This is a fault of autostamp: please report it with the file.", _USAGE),
    ("AS3005", "{path} holds no stamps to strip", "Give a file that autostamp wrote.", _FINDINGS),
    ("AS3101", "safety: {detail}", "Read the report; `--skip` the sites that move the schedule.", _FINDINGS),
    ("AS3102", "stamp of instance {instance} is missing in the compiled kernel", "The compiler removed it: please report it with the kernel.", _FINDINGS),
    ("AS4001", "CuTe-DSL is not installed: {detail}", "pip install 'autostamp[cuda13]' (or cuda12); `autostamp doctor` says what is there.", _NO_DEVICE),
    ("AS4002", "{tool} was not found", "Install it; `autostamp doctor` says how.", _NO_DEVICE),
    ("AS4003", "{tool} failed: {detail}", "Run the command above by hand to see its whole output.", _USAGE),
    ("AS4004", "too many stamps in one kernel trace: {count} events, at most {limit}", "Select fewer sites with --only or --skip.", _FINDINGS),
    ("AS5001", "no GPU to run on: {detail}", "Use --compile-only to stop after compilation, or run on a machine with a GPU.", _NO_DEVICE),
    ("AS5002", "{module} was imported before autostamp's hook, by {importer}", "Open the session before the import, or use `autostamp run`.", _FINDINGS),
    ("AS5003", "no record was written: {detail}", "{hint}", _FINDINGS),
    ("AS5004", "{variable} lets {application} serve kernels compiled without stamps", "Set {variable}={value} before {application} is imported, or use `autostamp run`.", _FINDINGS),
    ("AS5005", "a session is already open", "Close it first: records of two sessions cannot share one kernel.", _USAGE),
    ("AS5006", "{module} was asked for but never imported", "Check the name; --instrument takes a module, a package or a file of the program.", _FINDINGS),
    ("AS5007", "cannot run {command}: {detail}", "Give a Python program: `autostamp run -- python bench.py` or `-m package`.", _USAGE),
    ("AS5008", "cupy is not installed: {detail}", "pip install 'autostamp[cuda13]' (or cuda12).", _NO_DEVICE),
    ("AS5009", "{module} is loaded by {loader}, past autostamp's hook", "Load it as an ordinary source file, or stamp it on disk first.", _FINDINGS),
    ("AS6001", "{path} is not a readable record file: {detail}", "The run was cut short or the file was truncated: record again.", _FINDINGS),
    ("AS6002", "the manifest does not belong to these records: {detail}", "Use the manifest of the same run.", _FINDINGS),
    ("AS6003", "{path} is not a manifest: {detail}", "Give the *.manifest.json or RUN/manifest.json that autostamp wrote.", _FINDINGS),
    ("AS6004", "{path} is not a run folder: {detail}", "Give the folder that `autostamp run -o` wrote.", _FINDINGS),
    ("AS6005", "event {event} is not in the manifest (lane {lane}, record {record})", "The buffer was overwritten or belongs to another kernel: record again.", _FINDINGS),
    ("AS6006", "lane {lane}: {detail}", "The trace is not usable as it stands; record again and report it if it stays.", _FINDINGS),
    ("AS7001", "cannot write {path}: {detail}", "Choose a folder you may write to with -o.", _USAGE),
    ("AS7002", "nothing to export: {detail}", "Choose another kernel trace or record again.", _FINDINGS),
    ("AS9001", "{detail}", "See --help.", _USAGE),
    ("AS9002", "{path}: no such file, folder or installed module", "Check the spelling.", _USAGE),
    ("AS9003", "unknown key {key} in [tool.autostamp]", "{hint}", _USAGE),
    ("AS9999", "a fault of autostamp: {detail}", "Please report it with the traceback above.", _USAGE),
)

CODES: dict[str, CodeInfo] = {code: CodeInfo(code, message, help_, status) for code, message, help_, status in _ROWS}
