# SPDX-License-Identifier: Apache-2.0
"""What joined runs cost, as one file: `python -m benchmarks.replays NAME=RUN... [--json OUT]`.

Reads what `autostamp run --replay` left in each run folder, prints each set's ratio and each site that is missing with its
cost, and writes both with the machine's facts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.overhead_statistics import table


def collected(name: str, run: Path) -> dict[str, Any]:
    """One run's `replays.json` with the kernels' names and the texts of its sites."""
    said = json.loads((run / "replays.json").read_text(encoding="utf-8"))
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    texts = {
        f"{Path(file['path']).name}:{site['span']['line']}": site["text"]
        for file in manifest["files"]
        for site in (*file["skips"], *file["sites"])  # a call that no kept set stamps is among the skips
    }
    said["name"] = name
    said["kernels"] = [trace["kernel"] for trace in manifest["traces"]]
    said["texts"] = texts
    return dict(said)


def facts(run: Path) -> dict[str, Any]:
    """The machine's facts without the command that was run."""
    found = json.loads((run / "machine.json").read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if key != "command"}


def report(case: dict[str, Any]) -> str:
    """Two Markdown tables: sets with their ratios, sites that are missing with their costs."""
    seen: set[tuple[str, str]] = set()
    rows = []
    for made in case["sets"]:
        sites = [(key, form) for key, form in made["sites"] if not {(key, form), (key, "both")} & seen]
        own = [f"{_place(key)}{'' if form == 'both' else f' ({form})'}" for key, form in sites]
        seen |= set(sites)
        times = made["times"]
        equal = {True: "bit-equal", False: "DIFFER", None: "not compared"}[made["results_equal"]]
        spread = f"{times['p10']:.3f}-{times['p90']:.3f}"
        new = ", ".join(own) if len(own) < 8 else f"{len(own)} sites"
        rows.append((str(made["number"]), str(len(made["sites"])), new, f"{times['ratio']:.3f}", spread, equal))
    parts = [
        f"## {case['name']}, clean {max(made['times']['clean'] for made in case['sets']):.1f} µs",
        table(("set", "sites", "of these new", "ratio", "p10-p90", "results"), rows),
    ]
    missing = [
        (_place(each["key"]), _text(case, each["key"]), each["cost"], each["code"]) for each in case["uncovered"]
    ]
    if missing:
        parts.append(table(("not covered", "call", "what it takes", "code"), missing))
    parts += case["notes"]
    return "\n\n".join(parts)


def _place(key: str) -> str:
    name, line = key.split(":")[:2]
    return f"{name}:{line}"


def _text(case: dict[str, Any], key: str) -> str:
    return " ".join(str(case["texts"].get(_place(key), "")).split())[:60]


def main() -> int:
    """Print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    pairs = [(name, Path(run)) for name, _, run in (text.partition("=") for text in options.runs)]
    cases = [collected(name, run) for name, run in pairs]
    print("\n\n".join(report(case) for case in cases))
    if options.json:
        content = {"schema_version": 1, "machine": facts(pairs[0][1]), "cases": cases}
        options.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
