"""The format of java.util.Properties, by its own documentation."""

import pytest

from kraft_wire.node.properties import Property, parse_properties


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("Truth = Beauty", "Truth", "Beauty"),
        ("  Truth:Beauty", "Truth", "Beauty"),
        ("Truth                    :Beauty", "Truth", "Beauty"),
        ("cheeses", "cheeses", ""),
        ("a b c", "a", "b c"),
        (r"a\=b\:c\ d = x", "a=b:c d", "x"),
        (r"path=C:\\data\ttab", "path", "C:\\data\ttab"),
        (r"umlaut=\u00e4\u00zz", "umlaut", "äu00zz"),
        ("a=1\\\n    ,2", "a", "1,2"),
        ("a=b=c", "a", "b=c"),
        ("a=1 ", "a", "1 "),
    ],
)
def test_one_entry(text: str, key: str, value: str) -> None:
    assert parse_properties(text) == [Property(key, value, 1)]


def test_entries_know_their_lines_among_comments_and_continuations() -> None:
    text = "# c\n! c\n\n a=1\nfruits=apple, \\\n   # banana\nb\na=2"
    assert parse_properties(text) == [
        Property("a", "1", 4),
        Property("fruits", "apple, # banana", 5),
        Property("b", "", 7),
        Property("a", "2", 8),
    ]
