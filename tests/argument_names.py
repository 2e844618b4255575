"""Find arguments that are named for another parameter than the one they are passed to.

mypy cannot see that two integers were swapped, and a test may not see it either where the caller
is far from what it changes. The names tell: `f(wall_ms, now_ms)` is wrong for `def f(now_ms,
wall_ms)`. A call is matched by the name of what it calls. Where several functions have that name,
all of them must object.
"""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Misplaced", "Signatures", "misplaced"]

CLOCKS: Final = ("now_ms", "wall_ms")
UNITS: Final = ("_ms", "_seconds", "_bytes", "_count", "_offset", "_epoch", "_id", "_index")
TOO_GENERAL: Final = ("name",)
"""Arguments with these names are passed to parameters of all kinds."""
_GENERATED: Final = Path(__file__).parents[1] / "kraft_wire/wire/generated"
_SLOTS: Final = re.compile(r"^class (\w+)\(.*?\):\n.*?^    __slots__ = \((.*?)\)", re.M | re.S)
_RECORD_CLASSES: Final = ("dataclass", "frozen", "slotted", "NamedTuple")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Misplaced:
    """One argument, and the parameter that it is passed to."""

    line: int
    callee: str
    parameter: str
    argument: str

    def __str__(self) -> str:
        return f"{self.callee}({self.parameter}={self.argument})"


@dataclass(frozen=True, slots=True)
class _Signature:
    positional: tuple[str, ...]
    others: tuple[str, ...] = ()
    needed: int = 0
    """How many of the positional ones have no default."""
    is_open: bool = False
    """Whether it takes any number of positional arguments."""
    has_any_names: bool = False
    """Whether it takes keywords of any name."""

    def takes(self, call: ast.Call) -> bool:
        """Return whether a call has neither too few nor too many arguments, by number and name."""
        given = [each.arg for each in call.keywords if each.arg is not None]
        named = {*self.positional[: self.needed]} & {*given}
        is_enough = len(given) < len(call.keywords) or len(call.args) + len(named) >= self.needed
        is_known = self.has_any_names or {*given} <= {*self.positional, *self.others}
        return is_enough and is_known and (self.is_open or len(call.args) <= len(self.positional))


@dataclass(slots=True)
class Signatures:
    """The parameters of all functions, methods and classes, by name."""

    by_name: dict[str, list[_Signature]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, trees: Iterable[ast.Module]) -> "Signatures":
        """Return those of some modules, and of the generated classes."""
        found = cls()
        for name, fields in _generated():
            found.by_name[name].append(_Signature((), fields))
        for tree in trees:
            found._take(tree.body, is_class=False)
        return found

    @classmethod
    def of_one(cls, tree: ast.Module) -> "Signatures":
        """Return those of one module alone."""
        found = cls()
        found._take(tree.body, is_class=False)
        return found

    def _take(self, body: Iterable[ast.stmt], *, is_class: bool) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.by_name[node.name] += _constructors(node)
                self._take(node.body, is_class=True)
            elif isinstance(node, FunctionNode):
                if "property" not in map(ast.unparse, node.decorator_list):
                    self.by_name[node.name].append(_signature(node, is_method=is_class))
                self._take(node.body, is_class=False)

    def matching(self, name: str, call: ast.Call) -> list[_Signature]:
        """Return what a call of that name may call."""
        if any(isinstance(each, ast.Starred) for each in call.args):
            return []
        return [each for each in self.by_name.get(name, ()) if each.takes(call)]


def _generated() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the generated classes with their fields, which are keywords; parsing takes longer."""
    for path in sorted(_GENERATED.glob("*.py")):
        for name, slots in _SLOTS.findall(path.read_text(encoding="utf-8")):
            yield name, tuple(re.findall(r"\w+", slots))


def _signature(node: FunctionNode, *, is_method: bool) -> _Signature:
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    is_bound = is_method and "staticmethod" not in map(ast.unparse, node.decorator_list)
    others = tuple(each.arg for each in given.kwonlyargs)
    needed = len(names) - is_bound - len(given.defaults)
    is_open, has_any_names = given.vararg is not None, given.kwarg is not None
    return _Signature(tuple(names[is_bound:]), others, needed, is_open, has_any_names)


def _constructors(node: ast.ClassDef) -> list[_Signature]:
    """Return how a class is called, if its own body tells."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return [_signature(each, is_method=True)]
    words = " ".join(map(ast.unparse, (*node.decorator_list, *node.bases)))
    bases = [each for each in node.bases if ast.unparse(each) != "NamedTuple"]
    if bases or not any(word in words for word in _RECORD_CLASSES):
        return []
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    named = [each for each in fields if "ClassVar" not in ast.unparse(each.annotation)]
    needed = sum(each.value is None for each in named)
    return [_Signature(tuple(ast.unparse(each.target) for each in named), needed=needed)]


def misplaced(tree: ast.Module, signatures: Signatures) -> Iterator[Misplaced]:
    """Yield the arguments that are named for another parameter, another clock or another unit.

    Also attributes that a function assigns one parameter to and that are named for another one.
    """
    own = Signatures.of_one(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name, is_own = _called(node.func)
            known = (is_own and own.matching(name, node)) or signatures.matching(name, node)
            objections = [list(_objections(node, name, each)) for each in known]
            if objections and all(objections):
                yield from objections[0]
        elif isinstance(node, FunctionNode):
            yield from _crossed(node)


def _called(function: ast.expr) -> tuple[str, bool]:
    """Return the name of what is called, and whether the module that calls it may define it."""
    if isinstance(function, ast.Attribute):
        return function.attr, isinstance(function.value, ast.Name) and function.value.id == "self"
    if isinstance(function, ast.Name) and not hasattr(builtins, function.id):
        return function.id, True
    return "", False


def _objections(call: ast.Call, callee: str, signature: _Signature) -> Iterator[Misplaced]:
    passed: Mapping[str, ast.expr] = {
        **dict(zip(signature.positional, call.args, strict=False)),
        **{each.arg: each.value for each in call.keywords if each.arg},
    }
    parameters = {*signature.positional, *signature.others}
    for parameter, value in passed.items():
        argument = _named(value)
        if argument and argument != parameter and argument not in TOO_GENERAL:
            bare = parameter.lstrip("_")
            is_other = argument in parameters
            is_other_clock = {argument, bare} == set(CLOCKS)
            units = _unit(argument), _unit(bare)
            if is_other or is_other_clock or (all(units) and units[0] != units[1]):
                yield Misplaced(value.lineno, callee, parameter, argument)


def _crossed(function: FunctionNode) -> Iterator[Misplaced]:
    given = function.args
    parameters = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _named(node.value) in parameters:
            for target in node.targets:
                attribute = _named(target) if isinstance(target, ast.Attribute) else ""
                if attribute in parameters - {_named(node.value)}:
                    yield Misplaced(node.lineno, function.name, attribute, _named(node.value))


def _named(value: ast.expr) -> str:
    """Return the last name of a variable or an attribute, without underscores before it."""
    if isinstance(value, ast.Attribute):
        return value.attr.lstrip("_")
    return value.id if isinstance(value, ast.Name) else ""


def _unit(name: str) -> str:
    return next((each for each in UNITS if name.endswith(each)), "")
