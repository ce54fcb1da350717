# SPDX-License-Identifier: Apache-2.0
"""Questions to the MLIR under construction: which function, and whether one thread of the warp is alone here."""

from __future__ import annotations

from typing import Any

from cutlass._mlir import ir

_FUNCTIONS = ("cuda.kernel", "gpu.func", "func.func", "llvm.func")
_ELECT = ("elect_sync", "elect.sync")
_THREAD_INDEX = ("nvvm.read.ptx.sreg.tid.x", "nvvm.read.ptx.sreg.laneid")
_CONDITION_DEPTH = 6
_EQUAL = 0  # arith::CmpIPredicate::eq
WARP_SIZE = 32


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


def block() -> Any:
    """The block at the insertion point."""
    return ir.InsertionPoint.current.block


def enclosing_blocks() -> list[Any]:
    """Blocks around the insertion point, innermost first, up to the function's."""
    found: list[Any] = [block()]
    while _operation(found[-1].owner).name not in _FUNCTIONS:
        above = _operation(found[-1].owner).block
        if above is None:
            break
        found.append(above)
    return found


def at_end(of: Any) -> Any:
    """A context that inserts at the end of a finished block: before its terminator."""
    return ir.InsertionPoint.at_block_terminator(of)


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
    """True where a condition around the insertion point picks one thread that may not be lane 0.

    Either the condition comes from `elect.sync`, or it compares the thread or lane index with a constant of another lane.
    """
    return any(
        operation.name == "scf.if" and _picks_a_thread(operation.operands[0], _CONDITION_DEPTH)
        for operation in enclosing_operations()
    )


def _picks_a_thread(value: Any, depth: int) -> bool:
    owner = _operation(value.owner)
    if depth == 0 or not hasattr(owner, "operands"):
        return False
    if any(mark in owner.name for mark in _ELECT):
        return True
    if owner.name == "arith.cmpi":
        return _is_other_lane(owner)
    return any(_picks_a_thread(operand, depth - 1) for operand in owner.operands)


def _is_other_lane(comparison: Any) -> bool:
    """True for `thread index == constant` where the constant's lane is not 0."""
    is_equality = int(ir.IntegerAttr(comparison.attributes["predicate"]).value) == _EQUAL
    owners = [_operation(operand.owner) for operand in comparison.operands]
    if not is_equality or not all(hasattr(owner, "operands") for owner in owners):
        return False
    constants = [owner for owner in owners if owner.name == "arith.constant"]
    if len(constants) != 1 or not any(_is_thread_index(owner) for owner in owners):
        return False
    return int(ir.IntegerAttr(constants[0].attributes["value"]).value) % WARP_SIZE != 0


def _is_thread_index(operation: Any) -> bool:
    """True for the register itself and its remainder; a quotient is the same in all lanes of a warp."""
    if operation.name in ("arith.remsi", "arith.remui"):
        operation = _operation(operation.operands[0].owner)
    return operation.name in _THREAD_INDEX
