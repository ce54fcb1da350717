# SPDX-License-Identifier: Apache-2.0
"""Questions to the MLIR under construction: which function, and whether one thread of the warp is alone here."""

from __future__ import annotations

from typing import Any

from cutlass._mlir import ir

_FUNCTIONS = ("cuda.kernel", "gpu.func", "func.func", "llvm.func")
_ELECT = ("elect_sync", "elect.sync")
_CONDITION_DEPTH = 6


def _operation(thing: Any) -> Any:
    return getattr(thing, "operation", thing)


def enclosing_operations() -> list[Any]:
    """Operations around the insertion point, innermost first, up to and including the function."""
    found: list[Any] = []
    try:
        owner: Any = _operation(ir.InsertionPoint.current.block.owner)
    except ValueError:
        return found
    while owner is not None:
        found.append(owner)
        if owner.name in _FUNCTIONS:
            break
        owner = _operation(owner.parent) if owner.parent is not None else None
    return found


def enclosing_function() -> Any:
    """The device function being traced, or None outside one."""
    operations = enclosing_operations()
    return operations[-1] if operations else None


def _attribute(function: Any, name: str) -> str:
    return str(function.attributes[name]) if function is not None and name in function.attributes else ""


def symbol(function: Any) -> str:
    """Symbol name of a function operation."""
    return _attribute(function, "sym_name").strip('"')


def type_of(function: Any) -> str:
    """Function type as text."""
    return _attribute(function, "function_type")


def in_single_thread_region() -> bool:
    """True where a condition around the insertion point comes from `elect.sync`: one thread runs, maybe not lane 0."""
    return any(
        operation.name == "scf.if" and _comes_from_elect(operation.operands[0], _CONDITION_DEPTH)
        for operation in enclosing_operations()
    )


def _comes_from_elect(value: Any, depth: int) -> bool:
    owner = _operation(value.owner)
    if depth == 0 or not hasattr(owner, "operands"):
        return False
    if any(mark in owner.name for mark in _ELECT):
        return True
    return any(_comes_from_elect(operand, depth - 1) for operand in owner.operands)
