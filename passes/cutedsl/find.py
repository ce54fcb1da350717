# SPDX-License-Identifier: Apache-2.0
"""Walk a CuTe-DSL module and find its sync calls, kernels, launches and role branches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from autostamp.model.edit import Edit
from autostamp.model.site import KernelDef, Shape, Site, Skip, Span
from autostamp.model.sync import Kind, SyncOp
from autostamp.passes.cutedsl import calls, roles
from autostamp.passes.cutedsl.found import Form, Found, FoundSite, OperandText
from autostamp.passes.cutedsl.frames import WHITESPACE, Frames, decorators, has_buffer, is_kernel, parameters
from autostamp.passes.cutedsl.places import (
    RANK_RELEASE,
    RANK_ROLE,
    RANK_ROLE_END,
    RANK_STAMP,
    Block,
    Places,
    Statement,
    Text,
)
from autostamp.passes.cutedsl.spans import Spans

_JIT = re.compile(r"^(?:cute|cutlass|cute_ext)[\w.]*\.(?:jit|kernel)$|^(?:jit|kernel|dsl_user_op)$")
_DECLARATIVE = re.compile(rb"\btask_scheduling\b")
_DECLARED = {"acquire", "wait", "commit", "release", "try_acquire", "try_wait", "tail"}
_SELF_CALL = re.compile(rb"\bself\.(\w+)\s*\(")
_OFF = re.compile(rb"#\s*autostamp:\s*off\b")


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where the walk is."""

    qualname: str = ""
    forwarders: tuple[str, ...] = ()
    function: cst.FunctionDef | None = None
    is_device: bool = False
    kernel: str = ""
    role: str = ""
    loops: int = 0
    guard: str = ""
    role_depth: int = 0
    loop_role_depth: int = 0
    is_header: bool = False


class Finder:
    """One walk over one module. `found` holds the result after `run`."""

    def __init__(
        self,
        data: bytes,
        module: cst.Module,
        catalogue: calls.Catalogue,
        import_text: str,
        is_selected: Callable[[Site], bool],
    ) -> None:
        self._import_text = import_text
        self._is_selected = is_selected
        self._data = data
        self._module = module
        self._catalogue = catalogue
        self._spans = Spans(module)
        self._text = Text(data, module.default_newline)
        self._places = Places(self._text, self._spans)
        self._candidates = [hit.start() for hit in catalogue.pattern.finditer(data)]
        self._lines = [0, *(hit.end() for hit in re.finditer(b"\n", data))]
        self._is_declarative = _DECLARATIVE.search(data) is not None
        self._kernels: dict[str, str] = {}
        self._launch_candidates: list[int] = []
        self._local: set[str] = set()
        self._imported: set[str] = set()
        self._own_methods: set[str] = set()
        self._frames = Frames(data, self._spans, self._places)
        self.found = Found()

    def run(self) -> Found:
        """Find everything; sites come out in source order and numbered from 1."""
        self._collect(self._module.body, "")
        self._own_methods &= self._local
        if self._kernels:
            names = "|".join(re.escape(name) for name in self._kernels).encode()
            self._launch_candidates = [hit.start() for hit in re.finditer(rb"\b(?:" + names + rb")\s*\(", self._data)]
        self._block(Block(self._module.body, 0), _Scope())
        self._frames.thread_hosts()
        self.found.import_edit = self._frames.imported(self._module.body, self._import_text)
        self.found.frame_edits += self._frames.edits
        order = sorted(self.found.sites, key=lambda item: (item.site.span.start, item.site.span.end))
        self.found.sites = [
            replace(item, site=replace(item.site, number=number)) for number, item in enumerate(order, 1)
        ]
        self.found.skips.sort(key=lambda skip: skip.span.start)
        self.found.kernels = [
            replace(kernel, is_threaded=kernel.name.rsplit(".", 1)[-1] in self._frames.threaded)
            for kernel in self.found.kernels
        ]
        return self.found

    def _collect(self, statements: Sequence[cst.CSTNode], prefix: str) -> None:
        """Names of kernels and functions, before the walk meets their uses."""
        for statement in statements:
            if isinstance(statement, cst.FunctionDef):
                name = statement.name.value
                self._local.add(name)
                if name not in self._catalogue.by_method:
                    calls_of_self = _SELF_CALL.findall(self._data, *self._spans.of(statement))
                    self._own_methods.update(call.decode() for call in calls_of_self)
                if is_kernel(statement) and not has_buffer(statement):
                    self._kernels[name] = f"{prefix}{name}"
                self._collect(statement.body.body, f"{prefix}{name}.")
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._imported.update(_imported_names(small))
            elif isinstance(statement, cst.ClassDef):
                self._collect(statement.body.body, f"{prefix}{statement.name.value}.")
            elif isinstance(statement, (cst.If, cst.With, cst.Try, cst.For, cst.While)):
                self._collect(statement.body.body, prefix)
                orelse = getattr(statement, "orelse", None)
                if orelse is not None:
                    self._collect([orelse] if isinstance(orelse, cst.If) else orelse.body.body, prefix)

    def _source(self, node: cst.CSTNode) -> str:
        start, end = self._spans.of(node)
        return self._data[start:end].decode()

    def _has_candidate(self, start: int, end: int) -> bool:
        return _any_between(self._candidates, start, end)

    def _calls_sync(self, start: int, end: int) -> bool:
        """True when a name of the catalogue is called in [start, end); a variable may have such a name, too."""
        hits = self._catalogue.pattern.finditer(self._data, start, end)
        return any(self._data[hit.end() : end].lstrip().startswith(b"(") for hit in hits)

    def _block(self, block: Block, scope: _Scope) -> None:
        for index, statement in enumerate(block.statements):
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small, scope)
            elif isinstance(statement, cst.BaseSmallStatement):
                self._small(statement, scope)
            elif isinstance(statement, cst.FunctionDef):
                self._function(statement, scope)
            elif isinstance(statement, cst.ClassDef):
                self._class(statement, scope)
            elif isinstance(statement, cst.If):
                self._if(statement, scope)
            else:
                self._compound(block, index, statement, scope)

    def _suite(self, suite: cst.BaseSuite) -> Block:
        """The statements of a suite; its floor is where the header line ends."""
        if isinstance(suite, cst.IndentedBlock):
            # The suite's own span begins with its first statement, after blank lines and comments.
            return Block(suite.body, self._text.line_end(self._spans.of(suite.header)[0]))
        return Block(suite.body, self._spans.of(suite.body[0])[0])

    def _class(self, node: cst.ClassDef, scope: _Scope) -> None:
        name = f"{scope.qualname}.{node.name.value}".lstrip(".")
        header = replace(scope, is_header=True)
        for part in (*node.decorators, *node.bases, *node.keywords):
            self._expression(part, header, Shape.EXPRESSION)
        self._block(self._suite(node.body), replace(scope, qualname=name, function=None))

    def _function(self, node: cst.FunctionDef, scope: _Scope) -> None:
        marks = decorators(node)
        name = node.name.value
        qualname = f"{scope.qualname}.{name}".lstrip(".")
        is_entry = is_kernel(node)
        inner = _Scope(
            qualname=qualname,
            forwarders=(*scope.forwarders, name) if self._may_forward(name, scope) else scope.forwarders,
            function=node,
            is_device=scope.is_device or is_entry or any(_JIT.match(text) for text in marks),
            kernel=qualname if is_entry else "",
        )
        header = replace(scope, is_header=True)
        # libcst's span of a parameter is its name alone, so defaults are looked at by themselves.
        defaults = (parameter.default for parameter in parameters(node.params) if parameter.default is not None)
        for part in (*node.decorators, *defaults):
            self._expression(part, header, Shape.EXPRESSION)
        block = self._suite(node.body)
        if is_entry:
            line = bisect_left(self._lines, self._spans.of(node.name)[0] + 1)
            self.found.kernels.append(KernelDef(qualname, line, is_threaded=False, host=""))
            self._frames.open(node, block, qualname)
        self._block(block, inner)
        if is_entry:
            self._frames.close(block)

    def _may_forward(self, name: str, scope: _Scope) -> bool:
        """True for a method, or a function of a sync module's name: where its callers are recognised by that name."""
        is_known = bool(scope.qualname) or calls.has_function(self._catalogue, name)
        return scope.function is None and is_known and name not in self._own_methods

    def _if(self, node: cst.If, scope: _Scope) -> None:
        """An if-chain: each branch that a test on the warp index guards is a role branch."""
        test = self._source(node.test)
        is_role = scope.function is not None and roles.is_role_test(test)
        self._expression(node.test, scope, Shape.CONDITION)
        guard = " ".join(test.split())[:80]
        self._branch(node, node.body, scope, guard, roles.from_test(test) if is_role else "", is_role=is_role)
        orelse = node.orelse
        if isinstance(orelse, cst.If):
            self._if(orelse, scope)
        elif orelse is not None:
            self._branch(orelse, orelse.body, scope, f"not ({guard})", "", is_role=is_role)

    def _branch(
        self, owner: cst.If | cst.Else, suite: cst.BaseSuite, scope: _Scope, guard: str, name: str, *, is_role: bool
    ) -> None:
        block = self._suite(suite)
        if is_role and not name and scope.kernel:
            name = self._role_of(owner, suite, block)
        inner = replace(scope, guard=guard, role=scope.role or name, role_depth=scope.role_depth + bool(name))
        if name:
            self.found.frame_edits.append(self._places.before(block, 0, f'_as.role("{name}")', RANK_ROLE))
        self._block(block, inner)
        if name and not _is_left_early(block):
            rank = RANK_ROLE_END - inner.role_depth
            self.found.frame_edits.append(self._places.after(block, len(block.statements) - 1, "_as.role_end()", rank))

    def _role_of(self, owner: cst.CSTNode, suite: cst.BaseSuite, block: Block) -> str:
        """Name of a role branch whose test names none: from what it calls, from its comment, from its pipelines."""
        start, end = self._spans.of(owner)[0], self._text.line_end(block.floor - 1)
        header = self._data[start:end].decode(errors="replace").split("\n")[-1]
        return (
            roles.from_helpers(self._helpers(block.statements), self._local)
            or roles.from_comment(header)
            or roles.from_pipelines(self._source(suite))
        )

    def _helpers(self, statements: Sequence[cst.CSTNode]) -> list[str]:
        """Callees of the calls that stand as statements of their own, those in compile-time branches included."""
        found: list[str] = []
        for statement in statements:
            smalls = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
            for small in smalls:
                value = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
                if isinstance(value, cst.Call):
                    found.append(calls.dotted(value.func))
            if isinstance(statement, cst.If) and roles.is_compile_time(self._source(statement.test)):
                found += self._helpers(statement.body.body)
                orelse = statement.orelse
                found += self._helpers((orelse,) if isinstance(orelse, cst.If) else orelse.body.body if orelse else ())
        return found

    def _compound(self, block: Block, index: int, node: Statement, scope: _Scope) -> None:
        if isinstance(node, cst.While) and self._loop(block, index, node, scope):
            return
        is_loop = isinstance(node, (cst.For, cst.While))
        inner = replace(scope, loops=scope.loops + 1, loop_role_depth=scope.role_depth) if is_loop else scope
        if isinstance(node, cst.With):
            inner = replace(inner, guard=" ".join(self._source(item.item) for item in node.items)[:80])
        for child in node.children:
            self._child(child, inner)

    def _child(self, child: cst.CSTNode, scope: _Scope) -> None:
        if isinstance(child, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            self._block(self._suite(child), scope)
        elif isinstance(child, (cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)):
            for grandchild in child.children:
                self._child(grandchild, scope)
        elif isinstance(child, (cst.BaseExpression, cst.WithItem)):
            self._expression(child, scope, Shape.CONDITION)

    def _loop(self, block: Block, index: int, node: cst.While, scope: _Scope) -> bool:
        """`while not poll(...): pass` is one wait, stamped around the loop."""
        call = calls.is_trivial_loop(node)
        row = calls.match(call, self._catalogue) if call is not None else None
        if call is None or row is None or not calls.is_poll(row):
            return False
        reason = self._reason_to_skip(call, row, scope)
        if reason is not None:
            self._skip(call, row, scope, *reason)
            return True
        operands = calls.operands(call, row, self._spans, self._data)
        site = self._site(call, replace(row, kind=Kind.WAIT), Shape.WAIT_LOOP, scope, operands)
        places: tuple[Edit, ...] = ()
        if self._is_selected(site):  # a place that is asked for must be used: others may share its line
            places = (
                self._places.before(block, index, "@enter@", RANK_STAMP),
                self._places.after(block, index, "@exit@", RANK_STAMP),
            )
        self.found.sites.append(FoundSite(site, Form.LOOP, self._spans.of(node), operands, 0, row.group, places))
        return True

    def _small(self, small: cst.BaseSmallStatement, scope: _Scope) -> None:
        start, end = self._spans.of(small)
        if isinstance(small, (cst.Return, cst.Break, cst.Continue)):
            self._leave(small, start, scope)
        if isinstance(small, (cst.Import, cst.ImportFrom)):
            return
        if scope.function is not None and not scope.kernel and _any_between(self._launch_candidates, start, end):
            self._frames.launches(small, scope.function, self._kernels)
        if not self._has_candidate(start, end):
            return
        value: cst.BaseExpression | None = None
        shape = Shape.EXPRESSION
        if isinstance(small, cst.Expr):
            value, shape = small.value, Shape.STATEMENT
        elif isinstance(small, (cst.Assign, cst.AnnAssign)):
            value, shape = small.value, Shape.ASSIGNED
        if isinstance(value, cst.Call):
            self._call(value, scope, shape, (start, end), 0)
            self._inside(value, scope, 1)
        else:
            nested = Shape.RETURNED if isinstance(small, cst.Return) else Shape.EXPRESSION
            self._expression(small, scope, nested)

    def _leave(self, small: cst.BaseSmallStatement, start: int, scope: _Scope) -> None:
        """End the role branches that a `return`, `break` or `continue` jumps out of, and release the lane at a return."""
        is_return = isinstance(small, cst.Return)
        left = scope.role_depth if is_return else scope.role_depth - scope.loop_role_depth
        if left:
            self.found.frame_edits.append(Edit(start, start, "_as.role_end(); " * left, RANK_ROLE_END))
        if is_return and scope.kernel:
            self.found.frame_edits.append(Edit(start, start, "_as.release(); ", RANK_RELEASE))

    def _expression(self, node: cst.CSTNode, scope: _Scope, shape: Shape, depth: int = 0) -> None:
        """Calls anywhere inside an expression: they are stamped in expression form."""
        start, end = self._spans.of(node)
        if not self._has_candidate(start, end):
            return
        if isinstance(node, cst.Call):
            self._call(node, scope, shape, None, depth)
            self._inside(node, scope, depth + 1)
            return
        if isinstance(node, cst.Lambda):
            shape = Shape.LAMBDA
        elif isinstance(node, cst.FormattedString):
            scope = replace(scope, is_header=True)
        elif isinstance(node, (cst.Attribute, cst.Name)):
            self._reference(node, scope, depth)
        children = (node.value,) if isinstance(node, cst.Attribute) else node.children
        for child in children:
            if not isinstance(child, WHITESPACE):
                self._expression(child, scope, shape, depth)

    def _inside(self, call: cst.Call, scope: _Scope, depth: int) -> None:
        """Calls nested in a call: in its receiver (a chain) or in its arguments."""
        func = call.func
        if not isinstance(func, cst.Name):
            self._expression(func.value if isinstance(func, cst.Attribute) else func, scope, Shape.CHAINED, depth)
        for arg in call.args:
            self._expression(arg.value, scope, Shape.ARGUMENT, depth)

    def _reference(self, node: cst.Attribute | cst.Name, scope: _Scope, depth: int) -> None:
        """A function of a sync module passed as a value, `hook_fn=cute.arch.cluster_wait`."""
        *owner, name = calls.dotted(node).rsplit(".", 2)[-2:]
        if not owner and name not in self._imported:
            return
        for row in self._catalogue.by_method.get(name, ()):
            is_function = "." in row.owner and (not owner or row.owner.rsplit(".", 1)[-1] == owner[0])
            if is_function and row.kind in (Kind.WAIT, Kind.SIGNAL):
                if scope.function is None or scope.is_header:
                    self._skip(node, row, scope, "AS2107", "a reference outside any function")
                    return
                site = self._site(node, row, Shape.REFERENCE, scope, ())
                self.found.sites.append(FoundSite(site, Form.REFERENCE, self._spans.of(node), (), depth, row.group))
                return

    def _call(self, call: cst.Call, scope: _Scope, shape: Shape, statement: tuple[int, int] | None, depth: int) -> None:
        row = calls.match(call, self._catalogue, self._local | self._imported)
        if row is None:
            return
        reason = self._reason_to_skip(call, row, scope)
        if reason is None and row.kind is Kind.POLL:
            reason = ("AS2101", "a poll, which never blocks")
        if reason is None and row.kind is Kind.FENCE:
            reason = ("AS2102", "a fence")
        if reason is not None:
            self._skip(call, row, scope, *reason)
            return
        operands = calls.operands(call, row, self._spans, self._data)
        site = self._site(call, row, shape, scope, operands)
        # Stamps of a receiver's own call must not fall between those of this one.
        is_chained = any(item.keyword == "receiver" and self._calls_sync(item.start, item.end) for item in operands)
        form, outer = Form.EXPRESSION, self._spans.of(call)
        if statement is not None and not is_chained:
            form, outer = Form.STATEMENT, statement
        self.found.sites.append(FoundSite(site, form, outer, operands, depth, row.group, is_chained=is_chained))

    def _reason_to_skip(self, call: cst.Call, row: SyncOp, scope: _Scope) -> tuple[str, str] | None:
        if scope.is_header:
            return "AS2105", "in a decorator, a base class, a default value or an f-string"
        if scope.function is None:
            return "AS2108", "outside any function"
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        if name in self._local and not calls.has_function(self._catalogue, name):
            return "AS2103", f"{name} is a function of this file, stamped in its body"
        if calls.dotted(call.func) in {f"self.{method}" for method in self._own_methods}:
            return "AS2103", f"{row.method} is a method of this file, stamped in its body"
        forwarder = next((name for name in scope.forwarders if name in self._catalogue.by_method), "")
        if forwarder and not scope.kernel:
            return "AS2103", f"inside {forwarder}, whose callers are stamped"
        if self._is_declarative and not scope.is_device and row.method in _DECLARED and not call.args:
            return "AS2104", "recorded by task scheduling"
        start, end = self._spans.of(call)
        if _OFF.search(self._data, self._text.line_start(start), self._text.line_end(end)):
            return "AS2109", "switched off by a comment"
        return None

    def _span(self, node: cst.CSTNode) -> Span:
        start, end = self._spans.of(node)
        line = bisect_left(self._lines, start + 1)
        return Span(start, end, line, start - self._lines[line - 1] + 1)

    def _skip(self, node: cst.CSTNode, row: SyncOp, scope: _Scope, code: str, reason: str) -> None:
        text = " ".join(self._source(node).split())[:120]
        self.found.skips.append(Skip(self._span(node), text, row.method, row.kind, scope.qualname, code, reason))

    def _site(
        self, node: cst.CSTNode, row: SyncOp, shape: Shape, scope: _Scope, operands: tuple[OperandText, ...]
    ) -> Site:
        by_keyword = {operand.keyword: operand.text for operand in operands}
        barrier = (
            by_keyword.get("receiver")
            or by_keyword.get("pointer")
            or by_keyword.get("barrier_id")
            or row.group
            or row.method
        )
        return Site(
            number=0,
            span=self._span(node),
            text=" ".join(self._source(node).split())[:160],
            method=row.method,
            owner=row.owner,
            kind=row.kind,
            side=row.side,
            stage_from=row.stage_from,
            shape=shape,
            function=scope.qualname,
            barrier=barrier,
            role=scope.role,
            loop_depth=scope.loops,
            guard=scope.guard,
        )


def _imported_names(small: cst.BaseSmallStatement) -> Iterator[str]:
    """Names that a `from x import a as b` binds."""
    if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
        for alias in small.names:
            name = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(name, cst.Name):
                yield name.value


def _is_left_early(block: Block) -> bool:
    """True when the block's last statement jumps out of it."""
    last = block.statements[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, (cst.Return, cst.Break, cst.Continue))


def _any_between(offsets: list[int], start: int, end: int) -> bool:
    """True when the sorted `offsets` hold one in [start, end)."""
    index = bisect_left(offsets, start)
    return index < len(offsets) and offsets[index] < end
