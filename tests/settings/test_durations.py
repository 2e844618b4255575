"""Durations as Java's `Duration.parse` reads them: the sum of their parts, and Java itself."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.settings.durations import duration_ms
from tests.apache.source_judge import answers_of

NUMBERS = st.integers(0, 999)
TEXTS = 3_000


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(
    days: int, hours: int, minutes: int, seconds: int, millis: int
) -> None:
    expected = timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis
    )
    text = f"P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S"
    assert duration_ms(text) == expected // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1M", 60_000),
        ("P1D", 86_400_000),
        ("PT0.5S", 500),
        ("pt2h", 7_200_000),
        ("PT1.0009S", 1_000),
        ("PT+1S", 1_000),
        ("-PT1S", -1_000),
        ("-PT-0.5S", 500),
        ("P1DT-1H", 82_800_000),
        ("PT-0.0001S", -1),
        ("PT9223372036854775807S", 9_223_372_036_854_775_807_000),
        ("PT9223372036854775808S", None),
        ("P106751991167301D", None),
        (f"PT{'9' * 5_000}S", None),
        ("", None),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1H", None),
        ("PT1.0000000000S", None),
        ("PT\u0661S", None),
    ],
)
def test_signs_and_parts_that_are_not_there(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


@pytest.mark.java
def test_drawn_texts_are_read_as_java_reads_them() -> None:
    chance = Random(12)
    texts = [_drawn(chance) for _ in range(TEXTS)]
    answers = answers_of(Path(__file__).with_name("Durations.java"), texts).split()
    expected = [None if each == "none" else int(each) // 1_000_000 for each in answers]
    assert dict(zip(texts, map(duration_ms, texts), strict=True)) == dict(
        zip(texts, expected, strict=True)
    )
    assert TEXTS // 5 < expected.count(None) < TEXTS * 4 // 5


def _drawn(chance: Random) -> str:
    """Return a text that is a duration about half the time."""
    parts = [chance.choice(("", "", "", "-", "+", " ")), chance.choice("PPPPPPp")]
    parts += _part(chance, "D")
    if chance.random() < 0.8:
        parts.append(chance.choice("TTTt"))
        for unit in chance.choice(("HMS", "HMS", "MS", "SM", "HH")):
            parts += _part(chance, unit)
    return "".join(parts)


def _part(chance: Random, unit: str) -> list[str]:
    if chance.random() < 0.4:
        return []
    digits = chance.choice(("0", "1", "59", "007", "3600", "9" * 15, "9" * 19, "1" * 18, ""))
    fraction = chance.choice((".", ".5", ",25", ".123456789", ".1234567890"))
    has_fraction = chance.random() < (0.4 if unit == "S" else 0.05)
    sign = chance.choice(("", "", "", "-", "+"))
    return [sign, digits, fraction if has_fraction else "", unit]
