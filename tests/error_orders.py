"""Orders of errors: what a handler's docstring states, and what the tests of its API show.

A docstring states an order in a sentence such as:

    Errors per partition, first match wins: INVALID_REQUEST (named twice), those of `check_batch`,
    UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION; while it waits also REQUEST_TIMED_OUT.

Each item is a rank: the errors that it names, alternatives included. An item that names none, as
"those of `check_batch`", is an open rank: it stands for any errors. A test shows an order when its
name is one of `TEST_NAMES`. It sends requests with several faults each, and mends them one after
the other; so the errors that it expects, as they stand in its source, are the order.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.tidiness import Module

__all__ = ["TEST_NAMES", "Rank", "contradiction", "expected_errors", "named_errors", "stated_order"]

TEST_NAMES = ("test_errors_in_order", "test_first_error_in_kafka_s_order_is_answered")
Rank = frozenset[str]
"""Errors of one item of an order; empty for an open rank."""

_CLAUSE = re.compile(r"first match wins[,:](.*?)(?:; while it waits|\.(?:\s|$))")
_ERROR = re.compile("|".join(rf"\b{error.name}\b" for error in ErrorCode if error.value))
_QUOTED = re.compile(r"`[^`]*`")
_ALIASES = ("E", "ErrorCode")


def docstring_of(module: Module) -> str:
    """What the function `handle` of a module says of itself, in one line."""
    found = [node for node in module.tree.body if isinstance(node, ast.FunctionDef)]
    (handle,) = (node for node in found if node.name == "handle")
    return " ".join(_QUOTED.sub("``", ast.get_docstring(handle) or "").split())


def named_errors(docstring: str) -> list[str]:
    """All errors that a docstring names, each once."""
    return list(dict.fromkeys(_ERROR.findall(docstring)))


def stated_order(docstring: str) -> list[Rank]:
    """The ranks of all orders of a docstring, in the order of its sentences."""
    clauses = _CLAUSE.findall(docstring)
    return [frozenset(_ERROR.findall(item)) for clause in clauses for item in _items(clause)]


def _items(clause: str) -> Iterator[str]:
    """Split at the commas and semicolons that no parentheses enclose."""
    depth = begin = 0
    for at, character in enumerate(clause):
        depth += (character == "(") - (character == ")")
        if character in ",;" and depth == 0:
            yield clause[begin:at]
            begin = at + 1
    yield clause[begin:]


def expected_errors(tree: ast.Module) -> Iterator[list[str]]:
    """For each test that shows an order, the errors that it expects, in the order of its source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in TEST_NAMES:
            places = sorted(
                (each.lineno, each.col_offset, each.attr)
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id in _ALIASES
            )
            yield [name for *_, name in places if name != "NONE"]


def contradiction(order: Sequence[Rank], expected: Sequence[str]) -> str | None:
    """Say which expected error stands before one that the order has earlier; None if none does.

    An error may have several ranks. An open rank takes any error that has no rank behind it.
    """
    at = 0
    for before, error in pairwise([None, *expected]):
        later = range(at, len(order))
        found = next((rank for rank in later if error in order[rank]), None)
        if found is None:
            found = next((rank for rank in later if not order[rank]), None)
        if found is None:
            return f"{error} after {before}"
        at = found
    return None
