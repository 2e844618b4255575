"""Where a module can be changed: a walk over its tree that knows what to leave alone.

Adds the changes that need to know the function around a node: another parameter or field of the
same type, an early return, an answer turned round.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mutants.random.operators import OPERATORS, Edit, Source, display

__all__ = ["Place", "fields_beside", "places"]

Fields = Mapping[str, tuple[str, ...]]
"""An attribute's name, and others of the same type, beside it in every class that has it."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_JUDGED_BY_CHECK = {"__all__", "__slots__", "API_KEY", "VERSIONS"}
"""`make check` compares a handler's head with its document and with the tables."""

_TEXTS = {
    "help",
    "title",
    "description",
    "epilog",
    "metavar",
    "style",
    "justify",
    "indent",
    "rich_help_panel",
    "add_completion",
    "strict",
}
"""Keyword arguments that only people read, or that assert."""


@dataclass(frozen=True, slots=True)
class Place:
    """An edit, and the function that it is in; empty: a module's or a class's own code."""

    function: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class _Scope:
    prefix: str = ""
    function: str = ""
    is_building: bool = False
    """In `__init__`: what is not assigned there is missing, which everything notices."""
    answers_bool: bool = False
    twins: tuple[tuple[str, str], ...] = ()
    """Parameters and another one of the same type."""


def places(source: Source, fields: Fields) -> list[Place]:
    """Return every change of a module, in the order of its text; each compiles."""
    walk = _Walk(source, fields)
    found = list(walk.visit(source.tree, _Scope()))
    found.sort(key=lambda one: (one.edit.start, one.edit.end, one.edit.operator, one.edit.new))
    return found


def fields_beside(trees: Iterable[ast.Module]) -> dict[str, tuple[str, ...]]:
    """Return for each annotated attribute the others that can stand in its place."""
    beside: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            types = {
                one.target.id: ast.dump(one.annotation)
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            }
            for name, kind in types.items():
                same = {other for other, its in types.items() if its == kind and other != name}
                beside[name] = beside[name] & same if name in beside else same
    return {name: tuple(sorted(others)) for name, others in beside.items() if others}


class _Walk:
    """One module's walk."""

    def __init__(self, source: Source, fields: Fields) -> None:
        self._source, self._fields = source, fields

    def visit(self, node: ast.AST, scope: _Scope) -> Iterator[Place]:
        """Yield the changes of a node and of what is in it."""
        if self._is_left_alone(node):
            return
        inner = _within(node, scope)
        if not (scope.is_building and isinstance(node, ast.Assign)):
            operator = OPERATORS.get(type(node))
            for edit in operator(self._source, node) if operator else ():
                yield Place(scope.function, edit)
        for edit in self._in_scope(node, scope):
            yield Place(inner.function, edit)
        for child in _children(node):
            yield from self.visit(child, inner)

    def _is_left_alone(self, node: ast.AST) -> bool:
        match node:
            case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                return True
            case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return True
            case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
                return True
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "NewType" | "ParamSpec"))):
                return True
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return name in _JUDGED_BY_CHECK
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                return True
            case ast.keyword(arg=str(name)):
                return name in _TEXTS
        return False

    def _in_scope(self, node: ast.AST, scope: _Scope) -> Iterator[Edit]:
        source = self._source
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in dict(scope.twins):
                yield Edit("other parameter", *source.span(node), dict(scope.twins)[name])
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in self._fields:
                _, end = source.span(node)
                for other in self._fields[name][:2]:
                    yield Edit("other field", end - len(name), end, other)
            case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.Call() as value):
                if scope.answers_bool:
                    start, end = source.span(value)
                    yield Edit("condition negated", start, end, f"not ({source.text[start:end]})")
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple() as names]):
                yield from display(source, names)
            case ast.Assign(value=ast.Tuple() as row) if not scope.function:
                yield from display(source, row)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._early_returns(node)

    def _early_returns(self, function: _Function) -> Iterator[Edit]:
        """Yield a way out in front of each simple statement but the first and the last."""
        if not _answers(function, "None"):
            return
        for node in function.body[1:-1]:
            if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign):
                start, _ = self._source.span(node)
                yield Edit("early return", start, start, "return; ")


def _within(node: ast.AST, scope: _Scope) -> _Scope:
    """Return the scope of what is in a node."""
    if isinstance(node, ast.ClassDef) and not scope.function:
        return replace(scope, prefix=f"{scope.prefix}{node.name}.")
    if isinstance(node, _Function) and not scope.function:
        return _Scope(
            prefix=scope.prefix,
            function=scope.prefix + node.name,
            is_building=node.name in ("__init__", "__post_init__"),
            answers_bool=_answers(node, "bool"),
            twins=_twins(node.args),
        )
    return scope


def _answers(function: _Function, kind: str) -> bool:
    return function.returns is not None and ast.unparse(function.returns) == kind


def _twins(arguments: ast.arguments) -> tuple[tuple[str, str], ...]:
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    types = {one.arg: ast.dump(one.annotation) for one in given if one.annotation is not None}
    pairs = ((name, other) for name in types for other in types if name != other)
    return tuple({a: b for a, b in pairs if types[a] == types[b]}.items())


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be changed in a node: no annotation, no decorator, nothing that is raised."""
    skipped: list[ast.AST | None] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            skipped = [*node.decorator_list, getattr(node, "returns", None)]
        case ast.arg() | ast.AnnAssign():
            skipped = [node.annotation]
        case ast.Raise():
            return
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield child
