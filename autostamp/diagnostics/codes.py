# SPDX-License-Identifier: Apache-2.0
"""The table of AS#### codes. Each has a page in docs/codes/.

AS1 parse, AS2 find (a call that is not stamped, and why), AS3 emit and safety, AS4 build, AS5 launch and session,
AS6 records and manifest, AS7 reports (AS71: machine tables and budgets), AS8 launches from the command line, AS9 usage and faults of ours.
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
    ("AS1003", "no kernel in {path}", "Give the file that holds the kernel (@cute.kernel, __global__), or the package, so that its helpers are stamped too.", _FINDINGS),
    ("AS1004", "no sync call in {path}", "Check that this is the right file; waits in helpers of other files need those files named too.", _FINDINGS),
    ("AS1005", "{path} has a name _as of its own, which is what stamps are called by", "Rename it in the file.", _FINDINGS),
    ("AS1010", "{path} includes {include}, which was not found", "Name the folder that holds it with -I; nothing was written.", _FINDINGS),
    ("AS1011", "{function} could not be parsed and holds a sync call: {call}", "Write the construct that trips the parser in another way, or report it with the file.", _FINDINGS),
    ("AS1012", "the text has a sync call that its parse lacks: {call}", "Look at the line: if a warp waits or signals there, it is missing in the timeline.", _FINDINGS),
    ("AS1013", "{path} has a name {name} of its own; names that begin with AUTOSTAMP_ are those of stamps", "Rename it in the file.", _FINDINGS),
    ("AS1014", "{kernel} cannot take its slot as a parameter: {reason}", "Use --carrier auto or symbol; nothing was written.", _FINDINGS),
    ("AS1020", "no kernel {kernel} in {path}: {detail}", "Give one of these names with --kernel; a kernel in the body of a macro is not seen.", _USAGE),
    ("AS1021", "{name} is declared in several ways: {places}", "Say which is meant: --kernel ns::name for a kernel, -D for the branch of an #if.", _USAGE),
    ("AS1022", "cannot read the declaration {text}: {detail}", "Write it in plain C, or launch the kernel from a program of your own.", _FINDINGS),
    ("AS1023", "cannot choose an instance of {kernel}: {detail}", "Give the template's arguments, --kernel 'name<float, 4>'; for a kernel that is no template, none.", _USAGE),
    ("AS1024", "{name} cannot be given on the command line: {detail}", "Launch the kernel from a program of your own, or add a kernel that takes what the command line can give.", _FINDINGS),
    ("AS1025", "{struct} cannot be laid out: {detail}", "Use a plain struct for parameters: public members, no base classes, no bit-fields, no unions.", _FINDINGS),
    ("AS1026", "unknown type {type}", "Name the folder of the header that declares it with -I, or declare it in the file.", _FINDINGS),
    ("AS1027", "{name} is not an integer constant that is known here", "Define it with -D, or name the folder of its header with -I.", _FINDINGS),
    ("AS1028", "the compiler does not agree with what was read of {kernel}: {detail}", "A macro or an #if decides it: give the -D and -I of your build.", _FINDINGS),
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
    ("AS2111", "in a function that is not inlined into its kernel: {call}", "Let the function be inlined (no __noinline__, recursion or address taken) to stamp it.", _FINDINGS),
    ("AS2112", "inside the body of a macro: {call}", "Move the call into a function to stamp it.", _FINDINGS),
    ("AS2113", "{kernel} is launched nowhere in these files", "Name the file that launches it too; its records are kept all the same once it runs.", _FINDINGS),
    ("AS2114", "host code or an operand that is never evaluated: {call}", "Nothing to do.", _FINDINGS),
    ("AS2115", "no kernel that was stamped reaches it: {call}", "Name the file of the kernel too, or give the project with --project.", _FINDINGS),
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
    ("AS4010", "nvcc, the CUDA C++ compiler, was not found", "Install the CUDA toolkit, and put its bin folder on PATH or set CUDA_HOME.", _NO_DEVICE),
    ("AS4011", "nvcc {found} is too old for {arch}, which needs CUDA {needed}", "Install a newer toolkit, or choose another --arch.", _NO_DEVICE),
    ("AS4012", "{path} does not compile: {detail}", "Fix the error; the file was compiled as it is, without stamps.", _FINDINGS),
    ("AS4013", "the stamped copy of {path} does not compile: {detail}", "This is a fault of autostamp: please report it with the file. `--skip` leaves the site out.", _USAGE),
    ("AS4014", "nvcc could not run: {detail}", "Run `nvcc --version` by hand; it also needs a host compiler that it supports (gcc or clang).", _NO_DEVICE),
    ("AS4020", "{path} was compiled without stamps: {function} holds one and was not inlined into its kernel", "Declare it __forceinline__, or leave its calls out: --skip function=NAME.", _FINDINGS),
    ("AS4021", "{path} was compiled without stamps: with them it does not compile: {detail}", "This is a fault of autostamp: please report it with the file; --skip the site meanwhile.", _FINDINGS),
    ("AS4022", "{path} was compiled without stamps: {detail}", "The build went on; AUTOSTAMP_STRICT=1 makes it fail instead.", _FINDINGS),
    ("AS4023", "{compiler} is not nvcc: nothing is stamped", "Give nvcc, or a compiler cache and nvcc, after `autostamp nvcc --`.", _FINDINGS),
    ("AS4030", "{path} is not a cubin: {detail}", "Compile with nvcc -cubin, or take it out of a program with `cuobjdump -xelf all`.", _USAGE),
    ("AS4031", "no loop found in {kernel}", "Its loops may be unrolled in full, or be in a function that it calls; nothing is wrong with the cubin.", _FINDINGS),
    ("AS4032", "{kernel}: the order of its core opcodes is {distance} from the first build's (limit {limit})", "Read which loop moved; raise --fail-over where the change is wanted.", _FINDINGS),
    ("AS4040", "probe {probe} does not measure what it says, compiled for {arch}: {detail}", "It was not launched. Another release of nvcc may compile it otherwise; report it with `nvcc --version`.", _FINDINGS),
    ("AS4041", "the probe {path} does not compile for {arch}: {detail}", "Choose another --arch, or another release of nvcc; report it with `nvcc --version`.", _FINDINGS),
    ("AS5001", "no GPU to run on: {detail}", "Use --compile-only to stop after compilation, or run on a machine with a GPU.", _NO_DEVICE),
    ("AS5002", "{module} was imported before autostamp's hook, by {importer}", "Open the session before the import, or use `autostamp run`.", _FINDINGS),
    ("AS5003", "no record was written: {detail}", "{hint}", _FINDINGS),
    ("AS5004", "{variable} lets {application} serve kernels compiled without stamps", "Set {variable}={value} before {application} is imported, or use `autostamp run`.", _FINDINGS),
    ("AS5005", "a session is already open", "Close it first: records of two sessions cannot share one kernel.", _USAGE),
    ("AS5006", "{module} was asked for but never imported", "Check the name; --instrument takes a module, a package or a file of the program.", _FINDINGS),
    ("AS5007", "cannot run {command}: {detail}", "Give a program: `autostamp run -- python bench.py`, `-m package` or `./app`.", _USAGE),
    ("AS5008", "cupy is not installed: {detail}", "pip install 'autostamp[cuda13]' (or cuda12).", _NO_DEVICE),
    ("AS5009", "{module} is loaded by {loader}, past autostamp's hook", "Load it as an ordinary source file, or stamp it on disk first.", _FINDINGS),
    ("AS5010", "{program} recorded nothing: {detail}", "{hint}", _FINDINGS),
    ("AS5011", "{program} was ended by {signal} before its records were read", "Run it with --mapped: records then outlive the program.", _FINDINGS),
    ("AS5012", "{program} was ended by {signal}; records of {count} kernel traces were saved", "Read them with `autostamp summary`: the last stamp of each warp says where it was.", _FINDINGS),
    ("AS5013", "no manifest of unit {unit} was found, which {program} holds", "Name it with --manifest, or build the program again with `autostamp nvcc`.", _FINDINGS),
    ("AS5014", "{kernel} has records and is not known: {detail}", "Give the manifest that was written when the program was built (--manifest).", _FINDINGS),
    ("AS5015", "records of {kernel} are doubtful: {detail}", "Record one launch at a time (--launch N), or another CTA.", _FINDINGS),
    ("AS5016", "{count} launches of {kernel} were not kept: the limit is {limit}", "Choose one of them with --launch N.", _FINDINGS),
    ("AS5017", "the program's recorder says: {detail}", "Read the message; what it could not record is missing in the run.", _FINDINGS),
    ("AS5018", "nothing was recorded of {what}: {detail}", "Check --kernel and --launch.", _FINDINGS),
    ("AS5019", "threads of {kernel} shared a lane: {detail}", "Nothing to do where they ran as one, as the rest of a warp does while thread 0 is elsewhere.", ExitStatus.OK),
    ("AS5020", "no room to record {what}: {limit}", "{hint}", _USAGE),
    ("AS5021", "{count} of the {of} CTAs of {kernel} were recorded: there is no memory for more", "{hint}", _FINDINGS),
    ("AS5022", "{kernel} was launched {count} times, and {wanted} launches were to be kept", "Launch it more often, or ask for fewer with --repeat.", ExitStatus.OK),
    ("AS5023", "probe {probe} gave no figure: {detail}", "Run it again, with more --repeats; nothing else may run on this GPU meanwhile.", _FINDINGS),
    ("AS6001", "{path} is not a readable record file: {detail}", "The run was cut short or the file was truncated: record again.", _FINDINGS),
    ("AS6002", "the manifest does not belong to these records: {detail}", "Use the manifest of the same run.", _FINDINGS),
    ("AS6003", "{path} is not a manifest: {detail}", "Give the *.manifest.json or RUN/manifest.json that autostamp wrote.", _FINDINGS),
    ("AS6004", "{path} is not a run folder: {detail}", "Give the folder that `autostamp run -o` wrote.", _FINDINGS),
    ("AS6005", "event {event} is not in the manifest (lane {lane}, record {record})", "The buffer was overwritten or belongs to another kernel: record again.", _FINDINGS),
    ("AS6006", "lane {lane}: {detail}", "The trace is not usable as it stands; record again and report it if it stays.", _FINDINGS),
    ("AS6010", "{path} is not a slot spec: {detail}", "Mend the entry that the path in backquotes names; docs/formats/spec.md says what each may hold.", _FINDINGS),
    ("AS6011", "{path} does not fit its spec: {detail}", "Give the archive that the kernel's slots were saved to, with the spec of the same kernel.", _FINDINGS),
    ("AS6012", "{path} holds no record: {detail}", "Check that the kernel ran with this buffer, and that it was copied back after the kernel had ended.", _FINDINGS),
    ("AS6013", "{path}: {place}: {detail}", "Check the slot formula and the spec's events: two stamps may share a slot, or two launches the buffer.", _FINDINGS),
    ("AS6014", "{path} is not an IKET trace: {detail}", "Give the *.json that `run-iket profile --postprocess json` wrote, as it is or compressed with gzip.", _FINDINGS),
    ("AS7001", "cannot write {path}: {detail}", "Choose a folder you may write to with -o.", _USAGE),
    ("AS7002", "nothing to export: {detail}", "Choose another kernel trace or record again.", _FINDINGS),
    ("AS7003", "cannot make {path}: {detail}", "{hint}", _USAGE),
    ("AS7004", "cannot take the cost of measuring from {path}: {detail}", "--safety takes what `autostamp safety --json` prints, --overhead what benchmarks/overhead.py --json writes.", _USAGE),
    ("AS7010", "the runs have no kernel in common: {first} has {first_has}, {second} has {second_has}", "Give two runs of one kernel; --kernel chooses among several.", _USAGE),
    ("AS7101", "no machine table for {name}: {hint}", "`autostamp machine show` lists the machines; a file of your own may bring another.", _USAGE),
    ("AS7102", "{path} is not a machine file: {detail}", "Mend the entry; docs/formats/machine.md says what each may hold.", _USAGE),
    ("AS7103", "{machine} has no constant {name}: {what}", "Measure it, or add [constants.{name}] with value, unit = \"{unit}\", kind, source and condition to a machine file.", _USAGE),
    ("AS7104", "{path}: constant {name} has the unit {unit}, expected {expected}", "Convert the value to that unit and say so in `condition`.", _USAGE),
    ("AS7105", "{path}: the value of constant {name} is {value}, expected a number above zero", "Leave a constant that is unknown out of the file.", _USAGE),
    ("AS7106", "{what}: {detail}", "Work, sizes and depths are above zero; leave out what the kernel does not do.", _USAGE),
    ("AS7107", "phases wait for each other within one iteration: {chain}", "Give the dependency that crosses iterations its distance, 1 or more.", _USAGE),
    ("AS7120", "{path} is not a budget file: {detail}", "Mend the entry; docs/predict.md says what each key may hold.", _USAGE),
    ("AS7121", "{path}: {key} is {value}, expected {expected}", "Write the amount with its unit, as in tma_bytes = \"32 KB\".", _USAGE),
    ("AS7122", "{path}: {key} names the role {role}, which {kernel} lacks", "It has {known}.", _USAGE),
    ("AS7123", "nothing says how many warps of {kernel} are {role}", "Give a run of the kernel, or [roles.{role}] warps = N in a budget file.", _USAGE),
    ("AS7124", "no budget for {kernel}: {detail}", "Choose another --machine or --kernel, or give [[rows]] by hand in a budget file.", _USAGE),
    ("AS7125", "{path} is not a prediction file: {detail}", "Give the file that `autostamp predict -o` wrote.", _USAGE),
    ("AS7140", "the budget names roles that {kernel} lacks: {roles}", "The trace has: {there}. Say which is which with --role BUDGET=TRACE.", _USAGE),
    ("AS7141", "nothing to hold against the prediction in {kernel}: {detail}", "Record a run whose main loop repeats, from a kernel with cycles.", _FINDINGS),
    ("AS7142", "the prediction is of another source: {detail}", "Predict again from what this run was made of; of a cubin that lies elsewhere, name it with --cubin.", _USAGE),
    ("AS7143", "a bound is longer than the {what} period: {name}, {cycles} cycles against {period}", "A rate or an amount of work is wrong: {correction}.", _FINDINGS),
    ("AS7144", "the predicted period is {error} % off the {what} one (limit {limit} %)", "Read the split of the residual; add what the model lacks, or raise --fail-over.", _FINDINGS),
    ("AS7145", "{path} is not a lessons file: {detail}", "Mend it, or name another with --file or AUTOSTAMP_LESSONS.", _USAGE),
    ("AS7146", "the prediction was written after the run: {written_at} against {recorded_at}", "It may know the result: predict first, then record, to prove anything.", ExitStatus.OK),
    ("AS8001", "cannot read the argument {text}: {detail}", "Write NAME=VALUE, 'NAME=f32[1024,1024]:random' or NAME=file.npy.", _USAGE),
    ("AS8002", "{kernel} has no parameter {name}{hint}", "It has {parameters}.", _USAGE),
    ("AS8003", "{kernel} needs arguments that were not given: {missing}", "Add --arg NAME=... for each.", _USAGE),
    ("AS8004", "{name} does not fit: {detail}", "{hint}", _USAGE),
    ("AS8005", "cannot launch with this shape: {detail}", "Give the --grid, --block, --smem and --cluster that the kernel is launched with.", _USAGE),
    ("AS8006", "{array}: {detail}", "The stamped kernel must give what the clean one gives: report it with the kernel; `--skip` narrows it down.", _FINDINGS),
    ("AS8007", "{array} differs between two launches of the clean kernel: {detail}", "Comparing says nothing here: make the kernel deterministic, or use --no-compare.", _FINDINGS),
    ("AS8008", "the {copy} kernel failed: {detail}", "Check --grid, --block, --smem and the sizes of the arrays; `compute-sanitizer` names the access.", _FINDINGS),
    ("AS8009", "there is no stamped copy of {kernel}: {detail}", "What there is comes from the clean kernel alone; nothing was recorded.", _FINDINGS),
    ("AS8101", "{path} is not a placement file: {detail}", "Give the file that `autostamp place -o` wrote.", _USAGE),
    ("AS8102", "{path} has no set {number} (it has {numbers})", "Choose one of its sets with --set.", _USAGE),
    ("AS8103", "{count} sites of the placement were not met: {keys}", "The sources changed since, or a module was not imported: run `autostamp place` again.", _FINDINGS),
    ("AS8104", "a variant did not compile ({sites}): {detail}", "Its sites are left out of the sets that it stood for; the rest holds.", _FINDINGS),
    ("AS8105", "no anchor for role {role}: {detail}", "Replays of this role cannot be joined on a common site; its sets are still good each by itself.", _FINDINGS),
    ("AS8106", "nothing to place: {detail}", "{hint}", _USAGE),
    ("AS8107", "the clean build failed: {detail}", "Make the command compile without autostamp first.", _USAGE),
    ("AS8120", "set {number} cannot be joined: {detail}", "Give the sets a site in common, at best one in each role's main loop; its sites are missing, the rest holds.", _FINDINGS),
    ("AS8121", "set {number} ran another schedule: {detail}", "Split the set, or choose other sites with `autostamp place`; its sites are missing, the rest holds.", _FINDINGS),
    ("AS8122", "set {number} did other work: {detail}", "Replays can be joined of a kernel that does the same work each time: fix its inputs. The set's sites are missing, the rest holds.", _FINDINGS),
    ("AS8123", "set {number} has no records to join: {detail}", "Its sites are missing, the rest holds.", _FINDINGS),
    ("AS8124", "set {number} has too few launches: {detail}", "Give more --runs, or --repeat 4 with a program that launches the kernel so often.", _FINDINGS),
    ("AS8125", "set {number} did not run: {detail}", "Look at what the program printed; its sites are missing, the rest holds.", _FINDINGS),
    ("AS8126", "set {number} costs too much: {detail}", "Its sites are missing, and the report says what they cost; a larger --bar admits them.", _FINDINGS),
    ("AS8127", "what the sets cost was not measured: {detail}", "Give --time REGEX with which the kernel's time is found in what the program prints.", _FINDINGS),
    ("AS8128", "cannot read the replays of {path}: {detail}", "The run folder is damaged: record it again.", _FINDINGS),
    ("AS8129", "the program's results change from run to run: {detail}", "Comparing them says nothing here: fix the inputs and the order of additions, or leave --results out.", _FINDINGS),
    ("AS8130", "set {number} changed the results: {detail}", "The stamped kernel must give what the clean one gives: report it with the kernel. The set is left out.", _FINDINGS),
    ("AS8131", "no set is left to join: {detail}", "Nothing was written.", _FINDINGS),
    ("AS8132", "set {number} is one set too many: {detail}", "Its sites are missing, and the report says what they cost; a larger --sets admits it.", _FINDINGS),
    ("AS8133", "times vary too much for the bar: {detail}", "Use a size at which the GPU is not limited by its power, lock its clocks, or raise --bar.", _FINDINGS),
    ("AS9001", "{detail}", "See --help.", _USAGE),
    ("AS9002", "{path}: no such file, folder or installed module", "Check the spelling.", _USAGE),
    ("AS9003", "unknown key {key} in [tool.autostamp]", "{hint}", _USAGE),
    ("AS9999", "a fault of autostamp: {detail}", "Please report it with the traceback above.", _USAGE),
)

CODES: dict[str, CodeInfo] = {code: CodeInfo(code, message, help_, status) for code, message, help_, status in _ROWS}
