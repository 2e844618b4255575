"""Each kind of random change on a small source, and what no change may touch."""

import pytest

from mutants.random.operators import Source
from mutants.random.places import fields_beside, places


def changes(text: str) -> set[str]:
    """Every changed text of a source that compiles, without margins."""
    source = Source(text)
    found = set()
    for place in places(source, fields_beside([source.tree])):
        edit = place.edit
        changed = text[: edit.start] + edit.new + text[edit.end :]
        compile(changed, "changed", "exec")
        assert changed != text
        assert changed.count("\n") == text.count("\n") or edit.operator == "element dropped"
        found.add(f"{edit.operator}: {changed.strip()}")
    return found


def body(statement: str, head: str = "def f(a, b, c):") -> str:
    return f"{head}\n    {statement}\n"


@pytest.mark.parametrize(
    ("old", "operator", "new"),
    [
        ("return a < b", "boundary", "return a <= b"),
        ("return (a) >= (b)", "boundary", "return (a) > (b)"),
        ("return a < b", "comparison negated", "return a >= b"),
        ("return a < b <= c", "boundary", "return a < b < c"),
        ("return a is None", "comparison negated", "return a is not None"),
        ("return a is not None", "comparison negated", "return a is None"),
        ("return a not in b", "comparison negated", "return a in b"),
        ("return a == b", "comparison negated", "return a != b"),
        ("return 1_000", "off by one", "return 1001"),
        ("return 1_000", "off by one", "return 999"),
        ("return b[0]", "off by one", "return b[1]"),
        ("return True", "constant", "return False"),
        ("return a and b", "and/or", "return a or b"),
        ("return a and b", "operand dropped", "return True and b"),
        ("return a or b", "operand dropped", "return a or False"),
        ("return not a", "not dropped", "return     a"),
        ("return a + b", "sign", "return a - b"),
        ("a += b", "sign", "a -= b"),
        ("a += b", "assignment dropped", "pass"),
        ("a.b = c", "assignment dropped", "pass"),
        ("a[b] = c", "assignment dropped", "pass"),
        ("if a.b(): pass", "condition negated", "if not (a.b()): pass"),
        ("if a == b: pass", "condition constant", "if (a == b) or True: pass"),
        ("while a: pass", "condition constant", "while (a) and False: pass"),
        ("return a if b else c", "condition negated", "return a if not (b) else c"),
        ("return [x for x in a if x]", "filter dropped", "return [x for x in a if (x) or True]"),
        ("a.send(b)", "call dropped", "pass"),
        ("return a(b, c)", "arguments swapped", "return a(c, b)"),
        ("return a(x=b, y=c)", "arguments swapped", "return a(x=c, y=b)"),
        ("return min(a, b)", "min/max", "return max(a, b)"),
        ("return all(a)", "min/max", "return any(a)"),
        ("if a: return", "return dropped", "if a: pass"),
        ("raise a", "raise dropped", "pass"),
        ("return [a, b, c]", "element dropped", "return [a, c]"),
        ("return [a, b]", "element dropped", "return [a,]"),
        ("return a in (b, c,)", "element dropped", "return a in (b,)"),
        ("while a: break", "break/continue", "while a: continue"),
        ("while a: continue", "break/continue", "while a: pass"),
    ],
)
def test_operator_changes_its_node_alone(old: str, operator: str, new: str) -> None:
    assert f"{operator}: {body(new).strip()}" in changes(body(old))


def test_another_parameter_of_the_same_type_is_taken() -> None:
    text = body("return a", "def f(a: int, b: int, c: str) -> int:")
    assert changes(text) == {f"other parameter: {text.replace('return a', 'return b').strip()}"}


def test_another_field_of_the_same_type_is_taken() -> None:
    text = "class C:\n    a: int\n    b: int\n    c: str\ndef f(it):\n    return it.a, it.c\n"
    assert changes(text) == {f"other field: {text.replace('it.a', 'it.b').strip()}"}


def test_field_is_left_where_another_class_has_only_it() -> None:
    text = "class C:\n    a: int\n    b: int\nclass D:\n    a: int\ndef f(it):\n    return it.a\n"
    assert changes(text) == set()


def test_function_without_an_answer_returns_early() -> None:
    text = "def f(a) -> None:\n    b = a\n    c = b\n    d = c\n"
    assert f"early return: {text.replace('c = b', 'return; c = b').strip()}" in changes(text)
    assert changes(text.replace("None", "int")) == set()


def test_answer_of_a_question_is_turned_round() -> None:
    text = body("return a.is_b()", "def f(a) -> bool:")
    new = text.replace("a.is_b()", "not (a.is_b())").strip()
    assert f"condition negated: {new}" in changes(text)


def test_call_over_several_lines_leaves_as_many_lines() -> None:
    assert f"call dropped: {body('pass').strip()}" in changes(body("a(\n        b\n    )"))


def test_text_before_a_node_may_be_of_any_alphabet() -> None:
    new = body('return "ß€", a <= b').strip()
    assert f"boundary: {new}" in changes(body('return "ß€", a < b'))


@pytest.mark.parametrize(
    "text",
    [
        body('"""Says 1 < 2."""'),
        body("assert a < 1, b + 1"),
        body("return f'{a + 1}'"),
        body("return a", "def f(a: 'Literal[1]' = None) -> Literal[1]:"),
        '__all__ = ["a", "b"]\n',
        "VERSIONS: Final = (0, 2)\n",
        "@dataclass(frozen=True)\nclass C:\n    pass\n",
        "a: Literal[1, 2]\n",
        "Done: TypeAlias = Callable[[int, str], None]\n",
        "T = TypeVar('T', bound=a(1, 2))\n",
        "Offset = NewType('Offset', int)\n",
        "from a import b, c\n",
        "if __name__ == '__main__':\n    a(1)\n",
        body("b = Option(help=1, metavar=2)"),
        body("b = zip(a, strict=True)"),
        body("print(a)"),
    ],
)
def test_what_decides_nothing_is_left_alone(text: str) -> None:
    assert changes(text) == set()


def test_what_is_raised_is_left_alone() -> None:
    found = changes(body("raise a(b, 1)"))
    assert found == {f"raise dropped: {body('pass').strip()}"}
