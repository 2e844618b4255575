"""Every order of errors that a handler states is shown by a test of its API, and agrees with it.

`order_not_shown` of `tidy_allowances.json` lists what is still missing. It only shrinks.
"""

import ast

import pytest

from tests import error_orders, handler_heads
from tests.error_orders import contradiction, expected_errors, named_errors, stated_order
from tests.test_tidy import ALLOWED
from tests.tidiness import CHECKOUT, Module

NOT_SHOWN: dict[str, list[str]] = ALLOWED["order_not_shown"]
"""Errors that no test shows in their order, by handler."""
NO_ORDER: list[str] = ALLOWED["order_not_stated"]
"""Handlers that name several errors without saying which of them wins."""
FILES = {path.name: path for path in (CHECKOUT / "tests").rglob("test_*.py")}
HANDLERS = pytest.mark.parametrize(
    "module", handler_heads.handlers(), ids=lambda module: module.path.split("/")[-1]
)


def shown(module: Module) -> list[list[str]]:
    """What the tests of an API expect, one list for each test that shows an order."""
    name = f"test_{module.path.rpartition('/')[2]}"
    return list(expected_errors(ast.parse(FILES[name].read_text(encoding="utf-8"))))


@HANDLERS
def test_handler_with_several_errors_says_which_of_them_wins(module: Module) -> None:
    docstring = error_orders.docstring_of(module)
    is_stated = len(named_errors(docstring)) < 2 or "first match wins" in docstring
    assert is_stated is (module.path not in NO_ORDER), named_errors(docstring)


@HANDLERS
def test_order_of_the_docstring_is_the_order_of_the_tests(module: Module) -> None:
    order = stated_order(error_orders.docstring_of(module))
    for expected in shown(module):
        assert contradiction(order, expected) is None, (module.path, order)


@HANDLERS
def test_every_error_of_an_order_is_shown(module: Module) -> None:
    order = stated_order(error_orders.docstring_of(module))
    errors = dict.fromkeys(error for rank in order for error in sorted(rank))
    seen = {error for expected in shown(module) for error in expected}
    is_order = len({rank for rank in order if rank}) > 1
    missing = [error for error in errors if is_order and error not in seen]
    assert missing == NOT_SHOWN.get(module.path, []), (
        f"{module.path}: {' or '.join(error_orders.TEST_NAMES)} must expect each error of the order"
    )


def test_allowances_name_handlers() -> None:
    paths = {module.path for module in handler_heads.handlers()}
    assert [path for path in (*NOT_SHOWN, *NO_ORDER) if path not in paths] == []


DOCSTRING = (
    "Do it. Errors of the request, first match wins: INVALID_REQUEST (named twice, no type), "
    "UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION (INVALID_CONFIG below v3), those of ``, "
    "INVALID_REQUEST; while it waits also REQUEST_TIMED_OUT. NONE of it is INVALID_PARTITIONS."
)
ORDER = [
    {"INVALID_REQUEST"},
    {"UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_CONFIG"},
    set[str](),
    {"INVALID_REQUEST"},
]


def test_order_is_read_from_a_docstring() -> None:
    assert stated_order(DOCSTRING) == ORDER
    assert stated_order("Errors: INVALID_REQUEST, INVALID_CONFIG.") == []


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (["INVALID_REQUEST", "UNKNOWN_TOPIC_ID", "INVALID_REQUEST"], None),
        (["UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"], None),
        (["UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR"], None),
        (["GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_ID"], None),
        (
            ["UNKNOWN_TOPIC_ID", "INVALID_REQUEST", "INVALID_CONFIG"],
            "INVALID_CONFIG after INVALID_REQUEST",
        ),
    ],
)
def test_expected_errors_are_held_against_an_order(expected: list[str], found: str | None) -> None:
    assert contradiction(stated_order(DOCSTRING), expected) == found


SOURCE = """
@parametrize("error", [(1, E.INVALID_REQUEST), (2, ErrorCode.NOT_COORDINATOR), (3, E.NONE)])
def test_errors_in_order(error):
    assert other.NOT_CONTROLLER is ask(9) or ask(10) == E.GROUP_ID_NOT_FOUND

def test_something_else():
    assert ask(0) == E.NOT_CONTROLLER
"""


def test_errors_are_read_from_the_source_of_a_test() -> None:
    found = ["INVALID_REQUEST", "NOT_COORDINATOR", "GROUP_ID_NOT_FOUND"]
    assert list(expected_errors(ast.parse(SOURCE))) == [found]
