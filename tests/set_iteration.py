"""Finds iteration over sets: their order depends on the hash seed, so traces would differ per run.

Seen are set displays, comprehensions, `set(...)` and `frozenset(...)`, and names and attributes
that a module assigns from these or annotates as sets. Consumers that do not show the order are
fine.
"""

import ast
from collections.abc import Iterator

ORDER_BLIND = frozenset(
    {"sorted", "len", "sum", "min", "max", "any", "all", "set", "frozenset", "bool", "isdisjoint"}
)
ORDERED_COPIES = frozenset({"list", "tuple", "iter", "enumerate", "next", "join", "extend", "dict"})
SET_TYPES = ("set[", "frozenset[", "AbstractSet[", "Set[", "MutableSet[")
SET_MAKERS = frozenset({"set", "frozenset"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})


def iterated_sets(tree: ast.Module) -> Iterator[int]:
    """Line numbers where a set's order becomes visible."""
    known = _names_of_sets(tree)
    blind = _inside_order_blind_calls(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and _is_set(node.iter, known):
            yield node.lineno
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            shown = [g for g in node.generators if _is_set(g.iter, known)]
            if shown and id(node) not in blind:
                yield node.lineno
        elif isinstance(node, ast.Call) and _called(node) in ORDERED_COPIES:
            copied = [argument for argument in node.args if _is_set(argument, known)]
            if copied and id(node) not in blind:
                yield node.lineno


def _names_of_sets(tree: ast.Module) -> frozenset[str]:
    """Names that are sets wherever they are assigned, as written source (`seen`, `self._seen`)."""
    sets: list[str] = []
    others: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            is_set = ast.unparse(node.annotation).startswith(SET_TYPES)
            name = ast.unparse(node.target)
            (sets if is_set else others).extend([name, f"self.{name}"])
        elif isinstance(node, ast.arg) and node.annotation is not None:
            is_set = ast.unparse(node.annotation).startswith(SET_TYPES)
            (sets if is_set else others).append(node.arg)
        elif isinstance(node, ast.Assign):
            is_set = _is_set(node.value, frozenset())
            (sets if is_set else others).extend(ast.unparse(target) for target in node.targets)
    return frozenset(sets) - frozenset(others)


def _is_set(node: ast.expr, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        called = _called(node)
        if isinstance(node.func, ast.Name):
            return called in SET_MAKERS
        return called in SET_METHODS and _is_set(node.func.value, known)  # type: ignore[attr-defined]  # not a Name, so an Attribute: `_called` named it
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
        return _is_set(node.left, known) or _is_set(node.right, known)
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in known


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _inside_order_blind_calls(tree: ast.Module) -> frozenset[int]:
    """Arguments of calls whose result is the same in every order."""
    return frozenset(
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _called(node) in ORDER_BLIND
        for argument in node.args
    )
