# SPDX-License-Identifier: Apache-2.0
"""A stand-in for nvcc: keeps the words it was given, opens what the sources include, and writes the source as its output.

As nvcc 12 does, -M runs the host pass: what stands between `#ifdef __CUDA_ARCH__` and `#endif` is left out there, unless the
words define the macro. PRETEND_HIDDEN is a folder that is searched first, as one in a configuration file would be.
PRETEND_LOG names the file that each call's words are added to, as a line of JSON. PRETEND_SAYS and PRETEND_STATUS are its
stderr and status; PRETEND_STAMPED_SAYS and PRETEND_STAMPED_STATUS those of a call with -DAUTOSTAMP=1.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


APPENDED = os.environ.get("NVCC_APPEND_FLAGS", "").split()


def folders(words: list[str]) -> list[str]:
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word in ("-I", "-isystem"):
            found.append(following)
        elif word.startswith("-I"):
            found.append(word[2:])
    return found


DEVICE = re.compile(r"^#ifdef __CUDA_ARCH__$.*?^#endif$", re.MULTILINE | re.DOTALL)


def opened(source: str, search: list[str], is_device: bool) -> list[str]:
    """Names of what a source includes, in the order in which a compiler opens it, each once."""
    found: dict[str, None] = {}
    waiting = [source]
    while waiting:
        name = waiting.pop(0)
        content = Path(name).read_text(encoding="utf-8")
        for mark, text in INCLUDE.findall(content if is_device else DEVICE.sub("", content)):
            beside = [name.rpartition("/")[0]] if mark == '"' else []
            tried = (f"{folder}/{text}" if folder else text for folder in (*beside, *search))
            path = next((path for path in tried if Path(path).is_file()), None)
            if path is not None and path not in found:
                found[path] = None
                waiting.append(path)
    return list(found)


def value(words: list[str], option: str) -> str:
    return words[len(words) - words[::-1].index(option)] if option in words else ""


def main() -> int:
    words = sys.argv[1:]
    with Path(os.environ["PRETEND_LOG"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(words) + "\n")
    sources = [word for word in words if word.endswith(".cu") and Path(word).is_file()]
    listed = Path(value(words, "--options-file") or os.devnull)
    added = [*(listed.read_text(encoding="utf-8").split() if listed.exists() else ()), *APPENDED]
    search = [*os.environ.get("PRETEND_HIDDEN", "").split(), *folders([*words, *added])]
    is_device = "-M" not in words or any(word.startswith("-D__CUDA_ARCH__=") for word in words)
    names = {source: opened(source, search, is_device) for source in sources}
    rules = "".join(
        f"{Path(source).stem}.o : " + " \\\n    ".join([source, *names[source]]) + "\n" for source in sources
    )
    if "-M" in words and "-MF" in words:
        if is_device and "PRETEND_NO_DEVICE_PASS" in os.environ:
            return 1
        sys.stderr.write("".join(f". {name}\n" for source in sources for name in names[source]))
        Path(value(words, "-MF")).write_text(rules, encoding="utf-8")
        return 0
    kind = "STAMPED_" if "-DAUTOSTAMP=1" in words else ""
    sys.stdout.write(os.environ.get("PRETEND_PRINTS", ""))
    sys.stderr.write(os.environ.get(f"PRETEND_{kind}SAYS", ""))
    status = int(os.environ.get(f"PRETEND_{kind}STATUS", "0"))
    if status == 0:
        if "-o" in words:
            Path(value(words, "-o")).write_bytes(b"".join(Path(source).read_bytes() for source in sources))
        if "-MD" in words:
            Path(value(words, "-MF")).write_text(rules, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
