"""Patterns of transactional ids: what Python's own engine finds, in bounded time."""

from __future__ import annotations

import random
import re
import tracemalloc
from itertools import product

import pytest
import re2  # type: ignore[import-untyped]  # google-re2 has no types
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.broker.transactions.id_pattern import PatternTooCostly, id_matcher

PLACES = ("|", "^", "$", "")
PIECES = ("a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab)", r"\d", r"\W", "[a-c-]", *PLACES)
SIGNS = ("", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "{3,3}", "*?")
TEXTS = st.text(alphabet="abc1-\n", max_size=6)


SHORT_TEXTS = ["".join(each) for size in range(4) for each in product("ab1-", repeat=size)]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SIGNS)), max_size=6), TEXTS)
def test_matches_are_those_of_python(pieces: list[tuple[str, str]], text: str) -> None:
    """All short texts, of which some match, and a longer one, which seldom does."""
    pattern = "".join(piece if piece in PLACES else piece + sign for piece, sign in pieces)
    _compare(pattern, [*SHORT_TEXTS, text])


@pytest.mark.parametrize("sign", dict.fromkeys(SIGNS))
@pytest.mark.parametrize("piece", [each for each in PIECES if each not in PLACES])
def test_each_repetition_of_each_atom_is_that_of_python(piece: str, sign: str) -> None:
    for pattern in (piece + sign, f"a{piece}{sign}b", f"({piece}{sign}|b)"):
        _compare(pattern, SHORT_TEXTS)


def _compare(pattern: str, texts: list[str]) -> None:
    matcher = id_matcher(pattern)
    assert matcher is not None, pattern
    if pattern:
        # A dollar of Python's matches before a last newline, too.
        theirs = re.compile(pattern.replace("$", r"\Z"))
        for text in texts:
            assert matcher(text) == (theirs.fullmatch(text) is not None), (pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(",
            ")",
            "a)",
            "[",
            "[]",
            "a{2,1}",
            "a{1001}",
            "a{1,1001}",
            "a{2}{3}",
            "a{2}*",
            "a{2}?{3}",
            "{1}",
            "(a|{2})",
            "*",
            "a**",
            "[b-a]",
        ),
        "(?P<n>a)(?P<n>b)",
        *("a{1000}" * 11, "|".join(["a{1000}"] * 11), "(" + "a{900}" * 12 + ")"),
        *("(?i)a", "(?=a)", "\\", r"\1", r"\p{L}", "((a{100}){100}){100}", "(" * 60 + ")" * 60),
    ],
)
def test_what_is_no_pattern(pattern: str) -> None:
    assert id_matcher(pattern) is None


@pytest.mark.parametrize("pattern", ["(a+)+", "(a*)*b", "(a|a)*", "a*a*a*a*b", "(a|b|ab)*c"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Python's engine would not come back from some of these."""
    matcher = id_matcher(pattern)
    assert matcher is not None
    assert matcher("a" * 300) == (pattern in ("(a+)+", "(a|a)*"))


@pytest.mark.parametrize(
    "pattern",
    ["a{", "{", "a{,2}", "a{x}", "a{1,x}", "a{²}", "a{1", "a{1 }", "a{02}", "a{1,02}", "a}"],
)
def test_braces_that_are_no_counts_are_characters(pattern: str) -> None:
    """As with RE2/J 1.8, by which 4.3.1 matches."""
    matcher = id_matcher(pattern)
    assert matcher is not None
    assert (matcher(pattern), matcher("a"), matcher("aa")) == (True, False, False)


CLASSES = (
    *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct"),
    *("space", "upper", "word", "xdigit", "made-up", "", "^digit", "^made-up"),
)
OF_RE2 = (
    *(f"[[:{name}:]]" for name in CLASSES),
    *(
        "[[:",
        "[[:]",
        "[[:a]",
        "[[::]]",
        "[[:^:]]",
        "[[:al\npha:]]",
        "[[:[:digit:]]",
        "[[:x[:digit:]",
    ),
    *("[[:alpha:][:digit:]]", "[^[:alpha:]]", "[[:alpha:]-]", "[[:alpha:]", "[[a]]", "[[.a.]]"),
    *(r"\Q.\E", r"\Qa.", r"\Qab\E+", r"\Q\E", r"a\Q\Eb", r"[\Qa\E]", r"\E"),
    *(r"a\Q\E*", r"\Q\E*", r"a*\Q\E+", r"(a|\Q\E+)b", r"^\Q\E*a", r"\Qab\E\Q\E{2}", r"()*a\Q\E"),
    *(r"\Aa\z", r"a\A", r"\z", r"[\A]", r"\A*a", r"\Z"),
    *(r"\.", r"a\-b", r"[\n]", r"\n", r"\t|\a", r"\q"),
    *(r"\x61", r"\x6", r"\x{61}", r"\x{}", r"\x{110000}", r"\x{10FFFF}", r"[\x61-\x63]"),
    *(r"\141", r"\0", r"\08", r"\1", r"\18", r"\17", r"\777", r"[\141]"),
    *("(?P<n>a)", "(?<n>a)", "(?P<>a)", "(?P<n-m>a)", "(?P=n)", "(?<=a)b"),
)
MEMORY_MAX_BYTES = 16_000_000
ASCII = [chr(each) for each in range(128)]


@pytest.mark.parametrize("pattern", OF_RE2)
def test_syntax_is_that_of_re2(pattern: str) -> None:
    """Beside the package google-re2. RE2/J 1.8, by which 4.3.1 matches, finds the same in all."""
    options = re2.Options()
    options.log_errors = False
    matcher = id_matcher(pattern)
    try:
        theirs = re2.compile(pattern, options)
    except re2.error:
        assert matcher is None
        return
    assert matcher is not None
    for text in (*ASCII, *SHORT_TEXTS, ".", "abb", "a.", "\U0010ffff"):
        assert matcher(text) == (theirs.fullmatch(text) is not None), text


@pytest.mark.parametrize(
    "pattern",
    [
        r"\Q" + "a" * 1_000_000,
        "[" + "a" * 1_000_000 + "]",
        "[" + "[:" * 1_000_000 + "x]",
        "a|" * 300_000,
    ],
    ids=["quoted", "class", "beginnings of classes", "alternatives"],
)
def test_longer_patterns_than_a_program_has_steps_are_refused_at_once(pattern: str) -> None:
    """A request of 100 MB may have one: its time must not be squared, its memory not multiplied."""
    tracemalloc.start()
    try:
        assert id_matcher(pattern) is None
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_MAX_BYTES


def test_many_empty_quotes_are_read_in_one_pass() -> None:
    matcher = id_matcher(r"\Q\E" * 2_000 + "a")
    assert matcher is not None
    assert (matcher("a"), matcher("b")) == (True, False)


def drawn_ids() -> list[str]:
    """5,000 ids of 40 characters: every end of 15 of them has other threads."""
    source = random.Random(66)
    return ["".join(source.choices("abcde-7", k=40)) for _ in range(5_000)]


@pytest.mark.parametrize("pattern", [".*[ab].{15}", "(.*a.{1000}.*b){4}"])
def test_pattern_that_leads_through_ever_new_threads_is_too_costly(pattern: str) -> None:
    """Nothing that a client sends may hold the node; RE2 takes longer and longer here."""
    matcher = id_matcher(pattern)
    assert matcher is not None
    with pytest.raises(PatternTooCostly):
        sum(map(matcher, drawn_ids()))
    with pytest.raises(PatternTooCostly):
        matcher("a" * 10_000 + "b")


@pytest.mark.parametrize(
    "pattern", ["[a-z0-9-]{1,1000}", ".*", "(?:[a-e]|[0-9]|-){40}", r"\D*7.*|[^7]*"]
)
def test_usual_pattern_takes_no_work_for_more_ids(pattern: str) -> None:
    matcher = id_matcher(pattern)
    assert matcher is not None
    assert all(map(matcher, drawn_ids()))
