# SPDX-License-Identifier: Apache-2.0
"""A world in which kernel text runs as plain Python: every name is there, every call is noted, nothing is computed.

Two runs of one program with the same seed do the same calls in the same order. A stamped program must do exactly those of the
unstamped one, and its stamps must obey the rules that the recorder relies on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from autostamp.runtime.cutedsl import stamps

NAMES = (
    *(
        "cute",
        "cutlass",
        "pipe",
        "pipes",
        "state",
        "consumer",
        "producer",
        "bar",
        "use",
        "self",
        "flag",
        "handles",
        "i",
    ),
    *("warp_idx", "is_tma_warp", "is_dma_warp"),
)
NOTED_ATTRIBUTES = {"index", "phase", "count"}
BUDGET = 400


class OutOfBudget(BaseException):
    """The program made as many calls as it may: loops end here."""


class World:
    """What was done so far, and what the next test comes out as."""

    def __init__(self, seed: int) -> None:
        self.log: list[str] = []
        self._random = random.Random(seed)

    def note(self, text: str) -> None:
        if len(self.log) >= BUDGET:
            raise OutOfBudget
        self.log.append(text)

    def decide(self, text: str) -> bool:
        self.note(text)
        return self._random.random() < 0.6

    def names(self) -> dict[str, Any]:
        """Globals for a program: pretended objects, and decorators that let a kernel be called and launched."""
        found: dict[str, Any] = {name: Pretend(self, name) for name in NAMES}
        found["cute"]._children.update(kernel=self._kernel, jit=lambda function: function)
        return found

    def _kernel(self, *functions: Callable[..., Any]) -> Any:
        if not functions:
            return self._kernel

        def call(*args: Any) -> Any:
            functions[0](*args)
            return Pretend(self, "launcher")

        return call


class Pretend:
    """An object with every attribute and every operation."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self._children: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in NOTED_ATTRIBUTES:
            self._world.note(f"{self._name}.{name}")
        return self._children.setdefault(name, Pretend(self._world, f"{self._name}.{name}"))

    def _do(self, *words: Any, **named: Any) -> Pretend:
        shown = [*map(str, words), *(f"{key}={value}" for key, value in named.items())]
        self._world.note(f"{self._name}({', '.join(shown)})")
        return Pretend(self._world, f"r{len(self._world.log)}")

    def __call__(self, *args: Any, **named: Any) -> Pretend:
        return self._do(*args, **named)

    def __getitem__(self, key: Any) -> Any:
        # A constant index is cheap and may be evaluated again; anything else must be evaluated once.
        if isinstance(key, int):
            return self._children.setdefault(str(key), Pretend(self._world, f"{self._name}[{key}]"))
        return self._do("item", key)

    def __delitem__(self, key: Any) -> None:
        self._do("del", key)

    def __iter__(self) -> Iterator[Any]:
        self._world.note(f"iter {self._name}")
        return iter([Pretend(self._world, f"{self._name}.0"), Pretend(self._world, f"{self._name}.1")])

    def __bool__(self) -> bool:
        return self._world.decide(f"bool {self._name}")

    def __eq__(self, other: object) -> Any:
        return self._do("==", other)

    def __lt__(self, other: object) -> Any:
        return self._do("<", other)

    def __add__(self, other: object) -> Any:
        return self._do("+", other)

    def __radd__(self, other: object) -> Any:
        return self._do("+", other)

    def __int__(self) -> int:
        return 1

    def __enter__(self) -> Any:
        return self._do("enter")

    def __exit__(self, *error: object) -> None:
        self._do("exit")

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return self._name

    __hash__ = object.__hash__


class Recorder:
    """Stands in for the stamper of a file and holds every stamp to the rules."""

    def __init__(self) -> None:
        self.open_sites: list[int] = []
        self.roles: list[str] = []
        self.finished: list[int] = []
        self.is_bound = False

    def reset(self) -> None:
        """Forget what an error left behind, as the next kernel's bind does."""
        self.open_sites, self.roles, self.is_bound = [], [], False

    def bind(self, buffer: object, kernel: str) -> None:
        assert buffer is None
        assert not self.is_bound, "bound twice"
        self.reset()
        self.is_bound = True

    def release(self) -> None:
        assert self.is_bound, "released what was not bound"
        assert self.roles == [], "released inside a role"
        assert self.open_sites == [], "released inside a site"
        self.is_bound = False

    def hand(self, buffer: object) -> dict[str, object]:
        assert buffer is None
        return {}

    def role(self, name: str) -> None:
        assert name
        self.roles.append(name)

    def role_end(self) -> None:
        self.roles.pop()

    def enter(self, site: int, receiver: object = None, **operand: object) -> None:
        self.open_sites.append(site)

    open = enter

    def see(self, site: int, value: Any, field_name: str, text: str = "", *, waits: bool = False) -> Any:
        if site not in self.open_sites[-1:]:
            assert field_name == "receiver", "only a receiver may open its site"
            self.open_sites.append(site)
        return value

    def exit(self, site: int) -> None:
        assert self.open_sites.pop() == site
        self.finished.append(site)

    signal = exit

    def wrap(self, _site: int, function: Any, _kind: str, _text: str) -> Any:
        return function

    def around(self, site: int, _first: object, value: Any) -> Any:
        self.exit(site)
        return value


def run(text: bytes, functions: tuple[str, ...], seed: int, recorder: Recorder | None = None) -> tuple[list[str], str]:
    """Call every function of a program; what was done, and the kind of error that ended each call, if one did."""
    world = World(seed)
    names = world.names()
    ends = []
    with mock.patch.object(stamps, "stamper", return_value=recorder):
        exec(compile(text, "program.py", "exec", dont_inherit=True), names)
    for name in functions:
        if recorder is not None:
            recorder.reset()
        try:
            names[name](Pretend(world, "i"))
        except (OutOfBudget, UnboundLocalError, TypeError) as error:
            ends.append(type(error).__name__)
            continue
        ends.append("")
        if recorder is not None:
            assert not recorder.is_bound, "a kernel ended without a release"
            assert (recorder.roles, recorder.open_sites) == ([], [])
    return world.log, " ".join(ends)
