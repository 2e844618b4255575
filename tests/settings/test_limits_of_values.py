"""Each limit on a setting's value at its edges, in Kafka's words, and as Kafka prints it."""

import pytest

from kraft_wire.settings.definition import (
    AtLeast,
    Between,
    ConfigValue,
    ListOf,
    NonEmpty,
    OffsetReset,
    OneOf,
    ThrottledReplicas,
    Validator,
)

NULL = "Value must be non-null"
BETWEEN = Between(0, 1)
LEVEL = Between(1, 9, (-1,))
LEVELS = "Value must be between 1 and 9 or equal to -1"
CODECS = OneOf(("gzip", "zstd"))
CASES = OneOf(("A", "B"), ignore_case=True)
GAP = "Configuration values must not be empty."


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        (AtLeast(0), 0, None),
        (AtLeast(0), -1, "Value must be at least 0"),
        (AtLeast(-1), -1, None),
        (AtLeast(-1), -2, "Value must be at least -1"),
        (AtLeast(1), 0.5, "Value must be at least 1"),
        (AtLeast(0), None, NULL),
        (BETWEEN, 0, None),
        (BETWEEN, 1, None),
        (BETWEEN, 0.5, None),
        (BETWEEN, -0.1, "Value must be at least 0"),
        (BETWEEN, 1.1, "Value must be no more than 1"),
        (BETWEEN, None, NULL),
        (LEVEL, -1, None),
        (LEVEL, 0, LEVELS),
        (LEVEL, -2, LEVELS),
        (LEVEL, 9, None),
        (LEVEL, 10, LEVELS),
        (CODECS, "gzip", None),
        (CODECS, "zstd", None),
        (CODECS, "GZIP", "String must be one of: gzip, zstd"),
        (CODECS, None, "String must be one of: gzip, zstd"),
        (CASES, "a", None),
        (CASES, "B", None),
        (CASES, "c", "String must be one of (case insensitive): A, B"),
        (CASES, None, "String must be one of (case insensitive): A, B"),
        (ListOf(), None, "Configuration must not be null."),
        (ListOf(may_be_null=True), None, None),
        (ListOf(), (), None),
        (ListOf(may_be_empty=False), (), "Configuration must not be empty."),
        (ListOf(may_be_empty=False), ("a",), None),
        (ListOf(), ("a", "b"), None),
        (ListOf(), ("a", ""), GAP),
        (ListOf(("a", "b")), ("b", "a"), None),
        (ListOf(("a", "b")), ("a", "c"), "String must be one of: a, b"),
        (ListOf(("a", "b")), ("a", ""), GAP),
        (NonEmpty(), None, None),
        (NonEmpty(), "a", None),
        (NonEmpty(), "", "String must be non-empty"),
        (NonEmpty("non-null string"), "", None),
        (NonEmpty("non-null string"), None, NULL),
        (NonEmpty("non-empty list"), (), None),
        (NonEmpty("non-empty list"), None, None),
        (NonEmpty("non-empty list"), ("a",), None),
        (NonEmpty("non-empty list"), ("a", ""), GAP),
        (OffsetReset(), "latest", None),
        (OffsetReset(), "earliest", None),
        (OffsetReset(), "by_duration:P1DT2H3M4.5S", None),
        (OffsetReset(), "by_duration:PT1S", None),
        (OffsetReset(), "by_duration:pt1,5s", None),
        (OffsetReset(), "by_duration:PT1.S", None),
        (OffsetReset(), "by_duration:PT1H-30M", None),
        (OffsetReset(), "by_duration:-PT-1S", None),
        (OffsetReset(), "by_duration:PT-0S", None),
        (ThrottledReplicas(), (), None),
        (ThrottledReplicas(), ("*",), None),
        (ThrottledReplicas(), ("*", ""), None),
        (ThrottledReplicas(), ("0:1", " 12:34 "), None),
        (ThrottledReplicas(), ("0:1", "", "1:1"), None),
    ],
)
def test_limit(limit: Validator, value: ConfigValue, problem: str | None) -> None:
    assert limit.problem("k", value) == problem


@pytest.mark.parametrize(
    "value",
    [
        "",
        "none",
        "latest ",
        "by_duration:",
        "BY_DURATION:PT1S",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:-PT1S",
        "by_duration:PT1.0000000000S",
    ],
)
def test_other_beginnings_of_a_share_group_are_refused(value: str) -> None:
    problem = OffsetReset().problem("k", value)
    assert problem == (
        f"Invalid value `{value}` for configuration k. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


@pytest.mark.parametrize(
    "value", [("*", "0:1"), ("0",), ("0:",), (":1",), ("a:1",), ("0:b",), ("0:1:2",)]
)
def test_other_forms_of_throttled_replicas_are_refused(value: tuple[str, ...]) -> None:
    problem = ThrottledReplicas().problem("k", value)
    assert problem is not None
    assert problem.startswith("k must be the literal '*' or a list of replicas")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (AtLeast(-1), "[-1,...]"),
        (BETWEEN, "[0,...,1]"),
        (LEVEL, "[1,...,9] or -1"),
        (CODECS, "[gzip, zstd]"),
        (CASES, "(case insensitive) [A, B]"),
        (ListOf(), ""),
        (ListOf(("a", "b")), "[a, b]"),
        (NonEmpty("non-empty list"), "non-empty list"),
        (OffsetReset(), "[latest, earliest, by_duration:PnDTnHnMn.nS]"),
    ],
)
def test_limit_as_it_is_printed(limit: Validator, text: str) -> None:
    assert str(limit) == text
