"""Finds asserts that cannot fail, so that nobody reaches a share of asserts with decoration.

Vacuous is what the lines around it settle, without a look at other functions:

- a constant or a display that is not empty, a comparison of an expression with itself, and a
  length that is at least 0;
- `isinstance` or `is not None` on an argument whose annotation says so and which the function
  never assigns, or on a name to which the statement before has just given such a value;
- a comparison with what the statement before has just assigned;
- what the statement before has asserted, or has left the block for.
"""

import ast
from collections.abc import Iterator, Mapping

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def vacuous_asserts(tree: ast.Module) -> Iterator[int]:
    """Line numbers of asserts that cannot fail."""
    for function in ast.walk(tree):
        if isinstance(function, FunctionNode):
            types = _settled_types(function)
            for before, node in _asserts(function):
                if _is_settled(node.test, types, before) or _is_repeated(node.test, before):
                    yield node.lineno


def _asserts(function: FunctionNode) -> Iterator[tuple[ast.stmt | None, ast.Assert]]:
    """Every assert of a function, nested functions left out, with the statement before it."""
    blocks = [function.body]
    while blocks:
        block = blocks.pop()
        before: ast.stmt | None = None
        for statement in block:
            if isinstance(statement, ast.Assert):
                yield before, statement
            before = statement
            if not isinstance(statement, FunctionNode | ast.ClassDef):
                blocks += _blocks_of(statement)


def _is_repeated(test: ast.expr, before: ast.stmt | None) -> bool:
    """Whether the statement before asserts the same, or leaves the block if it does not hold."""
    if isinstance(before, ast.Assert):
        return ast.unparse(before.test) == ast.unparse(test)
    if not isinstance(before, ast.If) or before.orelse or not isinstance(before.body[-1], _LEAVES):
        return False
    return ast.unparse(before.test) in (ast.unparse(_negated(test)), f"not {ast.unparse(test)}")


_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE,
    ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [_OPPOSITES[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    inner = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    return [block for block in (*found, *(each.body for each in inner)) if block]


def _settled_types(function: FunctionNode) -> dict[str, frozenset[str]]:
    """The annotated types of arguments that the function never assigns."""
    given = function.args
    assigned = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return {
        each.arg: _members(each.annotation)
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if each.annotation is not None and each.arg not in assigned
    }


def _members(annotation: ast.expr) -> frozenset[str]:
    """`A | B[int]` as {"A", "B"}, also where it is quoted."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _members(annotation.left) | _members(annotation.right)
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return frozenset({ast.unparse(annotation)})


def _is_settled(
    test: ast.expr, types: Mapping[str, frozenset[str]], before: ast.stmt | None
) -> bool:
    if isinstance(test, ast.BoolOp):
        how = all if isinstance(test.op, ast.And) else any
        return how(_is_settled(each, types, before) for each in test.values)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple | ast.List | ast.Dict | ast.Set):
        return bool(ast.unparse(test).strip("()[]{}"))
    if isinstance(test, ast.Call) and ast.unparse(test.func) == "isinstance":
        return _is_known_instance(test, types, before)
    return isinstance(test, ast.Compare) and _is_settled_comparison(test, types, before)


def _is_known_instance(
    test: ast.Call, types: Mapping[str, frozenset[str]], before: ast.stmt | None
) -> bool:
    checked, kinds = ast.unparse(test.args[0]), test.args[1]
    names = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    wanted = frozenset[str]().union(*(_members(each) for each in names))
    if checked in types:
        return types[checked] <= wanted
    value = _assigned(before).get(checked)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in wanted


def _is_settled_comparison(
    test: ast.Compare, types: Mapping[str, frozenset[str]], before: ast.stmt | None
) -> bool:
    sides = [test.left, *test.comparators]
    pairs = zip(sides, test.ops, sides[1:], strict=False)
    return all(_is_settled_pair(*pair, types, before) for pair in pairs)


def _is_settled_pair(
    left: ast.expr,
    operator: ast.cmpop,
    right: ast.expr,
    types: Mapping[str, frozenset[str]],
    before: ast.stmt | None,
) -> bool:
    one, other = ast.unparse(left), ast.unparse(right)
    just = {name: ast.unparse(value) for name, value in _assigned(before).items()}
    if isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE) and (
        other in (one, just.get(one)) or one == just.get(other)
    ):
        return True
    if isinstance(operator, ast.LtE | ast.GtE):
        lower, upper = (one, right) if isinstance(operator, ast.LtE) else (other, left)
        return lower == "0" and isinstance(upper, ast.Call) and ast.unparse(upper.func) == "len"
    if isinstance(operator, ast.IsNot) and other == "None":
        if one in types:
            return not types[one] & _MAY_BE_NONE
        value = _assigned(before).get(one)
        return isinstance(value, _NEVER_NONE) or _is_class_call(value)
    return False


_MAY_BE_NONE = {"None", "Any", "object", "Optional"}
_NEVER_NONE = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr,
    ast.BinOp, ast.Compare,
)  # fmt: skip


def _is_class_call(value: ast.expr | None) -> bool:
    """Whether it makes an instance: calls a name that begins with a capital, or a plain type."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    name = value.func.id
    return name.lstrip("_")[:1].isupper() or name in (
        "len",
        "int",
        "bytes",
        "list",
        "dict",
        "sorted",
    )


def _assigned(before: ast.stmt | None) -> dict[str, ast.expr]:
    """What one statement has given to names and attributes."""
    if isinstance(before, ast.Assign):
        return {ast.unparse(target): before.value for target in before.targets}
    if isinstance(before, ast.AnnAssign) and before.value is not None:
        return {ast.unparse(before.target): before.value}
    return {}
