"""A broker's words in an error of ours: one line, whatever the broker sends."""

import pytest

from kraft_wire.client.refused import AdminRefused, one_line


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("No such topic.", "No such topic."),
        ("one\ntwo\r\n  three\t", "one two three"),
        ("\x1b[2Jgone\x07", "?[2Jgone?"),
        ("right\u202eto left", "right?to left"),
        ("", ""),
        pytest.param("x" * 2_000, "x" * 2_000, id="long"),
        pytest.param("x" * 2_001, "x" * 2_000 + "...", id="too long"),
    ],
)
def test_words_are_one_line(message: str, shown: str) -> None:
    assert one_line(message) == shown


def test_a_refusal_is_one_line() -> None:
    assert (
        str(AdminRefused("topic t", 37, "bad\ncount")) == "topic t: INVALID_PARTITIONS: bad count"
    )
    assert str(AdminRefused("topic t", 37, None)) == "topic t: INVALID_PARTITIONS"
