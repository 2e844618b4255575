"""Small changes of Python source: where each could be made, and what would stand there.

Every operator looks at one node of the syntax tree and yields edits of its text, so that all else
stays as it is, line for line. Left alone are asserts, annotations, decorators, docstrings, other
texts, what `raise` says, `__all__` and the help of command lines.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["OPERATORS", "Edit", "Source", "display", "dropped"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A half-open range of characters, and what stands there instead."""

    operator: str
    start: int
    end: int
    new: str


class Source:
    """A module's text with its tree; positions of the tree as offsets in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = lines

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the range of a node, in characters."""
        assert isinstance(node, ast.expr | ast.stmt), node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def line_of(self, offset: int) -> int:
        """Return the number of the line with a character, from 1 on."""
        return bisect_right(self._starts, offset)

    def _at(self, line: int, column_bytes: int) -> int:
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column_bytes].decode())


_BOUNDARY = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_OPPOSITE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_NEGATED = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
    "is": "is not", "is not": "is", "in": "not in", "not in": "in",
}  # fmt: skip
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_CALLED_TO_TELL = {
    "print",
    "write",
    "warn",
    "debug",
    "info",
    "warning",
    "error",
    "add_row",
    "add_column",
}
_SWAPPED_IN_VAIN = {
    "isinstance",
    "print",
    "min",
    "max",
    "zip",
    "getattr",
    "setattr",
    "cast",
    "suppress",
}


def _compare(source: Source, node: ast.Compare) -> Iterator[Edit]:
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        old = _OPPOSITE[type(operator)]
        place = _token(source, left, right, old)
        if place is not None:
            yield Edit("comparison negated", *place, _NEGATED[old])
            if type(operator) in _BOUNDARY:
                yield Edit("boundary", *place, _BOUNDARY[type(operator)])
        left = right


def _token(source: Source, left: ast.AST, right: ast.AST, token: str) -> tuple[int, int] | None:
    """Return where an operator stands between its operands."""
    start, end = source.span(left)[1], source.span(right)[0]
    pattern = re.escape(token).replace(r"\ ", r"\s+")
    pattern = rf"\b{pattern}\b" if token[0].isalpha() else pattern
    found = re.search(pattern, source.text[start:end])
    return (start + found.start(), start + found.end()) if found else None


def _constant(source: Source, node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield Edit("constant", *source.span(node), str(not value))
    elif isinstance(value, int):
        yield Edit("off by one", *source.span(node), str(value + 1))
        if value > 0:
            yield Edit("off by one", *source.span(node), str(value - 1))


def _logic(source: Source, node: ast.BoolOp) -> Iterator[Edit]:
    old, new, nothing = (
        ("and", "or", "True") if isinstance(node.op, ast.And) else ("or", "and", "False")
    )
    for left, right in pairwise(node.values):
        place = _token(source, left, right, old)
        if place is not None:
            yield Edit("and/or", *place, new)
    for value in node.values:
        yield Edit("operand dropped", *source.span(value), nothing)


def _not(source: Source, node: ast.UnaryOp) -> Iterator[Edit]:
    start, _ = source.span(node)
    if isinstance(node.op, ast.Not):
        yield Edit("not dropped", start, start + 3, "   ")


def _sum(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    for kind, old, new in ((ast.Add, "+", "-"), (ast.Sub, "-", "+")):
        place = _token(source, node.left, node.right, old)
        if isinstance(node.op, kind) and place is not None:
            yield Edit("sign", *place, new)


def _condition(source: Source, node: ast.If | ast.IfExp | ast.While) -> Iterator[Edit]:
    start, end = source.span(node.test)
    text = source.text[start:end]
    if isinstance(node.test, ast.Constant):
        return
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # those have operators of their own
        yield Edit("condition negated", start, end, f"not ({text})")
    if not isinstance(node, ast.While):
        yield Edit("condition constant", start, end, f"({text}) or True")
    yield Edit("condition constant", start, end, f"({text}) and False")


def _filter(source: Source, node: ast.comprehension) -> Iterator[Edit]:
    for test in node.ifs:
        start, end = source.span(test)
        yield Edit("filter dropped", start, end, f"({source.text[start:end]}) or True")


def _statement(source: Source, node: ast.Expr) -> Iterator[Edit]:
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(call, ast.Call) and _name(call.func) not in _CALLED_TO_TELL:
        yield dropped(source, node, "call dropped")


def dropped(source: Source, node: ast.stmt, operator: str) -> Edit:
    """Return the edit that leaves a statement out."""
    start, end = source.span(node)
    return Edit(operator, start, end, "pass" + "\n" * source.text.count("\n", start, end))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _assignment(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if isinstance(node, ast.AugAssign) or isinstance(targets[0], ast.Attribute | ast.Subscript):
        yield dropped(source, node, "assignment dropped")
    if isinstance(node, ast.AugAssign):
        for kind, old, new in ((ast.Add, "+=", "-="), (ast.Sub, "-=", "+=")):
            place = _token(source, node.target, node.value, old)
            if isinstance(node.op, kind) and place is not None:
                yield Edit("sign", *place, new)


def _call(source: Source, node: ast.Call) -> Iterator[Edit]:
    name = _name(node.func)
    if isinstance(node.func, ast.Name) and name in _TWINS:
        yield Edit("min/max", *source.span(node.func), _TWINS[name])
    if name in _SWAPPED_IN_VAIN:
        return
    given = [*node.args, *(one.value for one in node.keywords if one.arg)]
    for left, right in pairwise(given):
        one, other = source.of(left), source.of(right)
        kinds = ast.Name | ast.Attribute | ast.Subscript
        if one != other and isinstance(left, kinds) and isinstance(right, kinds):
            start, end = source.span(left)[0], source.span(right)[1]
            between = source.text[source.span(left)[1] : source.span(right)[0]]
            yield Edit("arguments swapped", start, end, f"{other}{between}{one}")


def _return(source: Source, node: ast.Return) -> Iterator[Edit]:
    if node.value is None:
        yield Edit("return dropped", *source.span(node), "pass")


def _jump(source: Source, node: ast.Break | ast.Continue) -> Iterator[Edit]:
    new = "continue" if isinstance(node, ast.Break) else "break"
    yield Edit("break/continue", *source.span(node), new)
    yield Edit("break/continue", *source.span(node), "pass")


def _raise(source: Source, node: ast.Raise) -> Iterator[Edit]:
    yield dropped(source, node, "raise dropped")


def display(source: Source, node: ast.List | ast.Set | ast.Tuple) -> Iterator[Edit]:
    """Yield the edits that leave out one of two or more elements."""
    elements = node.elts
    if len(elements) < 2 or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    for index, element in enumerate(elements):
        start, end = source.span(element)
        if isinstance(element, ast.JoinedStr):
            continue
        if index + 1 < len(elements):
            yield Edit("element dropped", start, source.span(elements[index + 1])[0], "")
        else:
            comma = "" if source.text[end:].lstrip().startswith(",") else ","
            yield Edit("element dropped", source.span(elements[index - 1])[1], end, comma)


OPERATORS: dict[type[ast.AST], Callable[..., Iterator[Edit]]] = {
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.BoolOp: _logic,
    ast.UnaryOp: _not,
    ast.BinOp: _sum,
    ast.If: _condition,
    ast.IfExp: _condition,
    ast.While: _condition,
    ast.comprehension: _filter,
    ast.Expr: _statement,
    ast.Assign: _assignment,
    ast.AugAssign: _assignment,
    ast.Call: _call,
    ast.Return: _return,
    ast.Break: _jump,
    ast.Continue: _jump,
    ast.Raise: _raise,
    ast.List: display,
    ast.Set: display,
}
