"""A token is replaced when Apache's refresher replaces it, and its life is read from its claims."""

from __future__ import annotations

import json
import random
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from kraft_wire.login.token_refresh import RefreshWindow, TokenTimes, refresh_at_ms, times_of
from tests.apache.source_judge import answers_of
from tests.node.security.tokens import plain_token, token

HERE = Path(__file__).parent
RECORDED = HERE / "observed" / "4.3.1.json"
NOW_MS = 1_700_000_000_000
CASES = 3_000


Case = tuple[RefreshWindow, TokenTimes]


def drawn_cases(seed: int, count: int) -> list[Case]:
    """Windows and lives, many of them at a bound of the formula or next to it."""
    chance = random.Random(seed)
    cases = []
    for _ in range(count):
        window = RefreshWindow(
            chance.choice((0.5, 0.8, 0.93, 1.0)),
            0.0,
            chance.choice((0, 1, 60, 900)),
            chance.choice((0, 1, 300, 3_600)),
        )
        begins = chance.choice((None, NOW_MS - chance.randrange(4_000_000), NOW_MS + 5_000))
        room_ms = (window.min_period_seconds + window.buffer_seconds) * 1_000
        near = chance.choice((0, room_ms)) + chance.choice((-1, 0, 1))
        expires = NOW_MS + chance.choice((near, chance.randrange(8_000_000)))
        cases.append((window, TokenTimes(begins, expires)))
    return cases


def apaches_times(cases: list[Case]) -> list[int]:
    """Return when 4.3.1's refresher replaces the tokens."""
    lines = [
        f"{window.factor} {window.min_period_seconds} {window.buffer_seconds} {NOW_MS} "
        f"{'-' if times.begins_ms is None else times.begins_ms} {times.expires_ms}"
        for window, times in cases
    ]
    return [int(line) for line in answers_of(HERE / "RefreshJudge.java", lines).splitlines()]


def our_times(cases: list[Case]) -> list[int]:
    return [refresh_at_ms(window, NOW_MS, times, 0.5) for window, times in cases]


def test_a_token_is_replaced_when_apaches_refresher_replaced_it() -> None:
    """Recorded: `ExpiringCredentialRefreshingLogin.refreshMs` of 4.3.1, without jitter."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))["refreshed at"]
    assert our_times(drawn_cases(seed=60, count=len(recorded))) == recorded
    assert len(set(recorded)) > 100


@pytest.mark.java
def test_a_token_is_replaced_when_apaches_refresher_replaces_it() -> None:
    """4.3.1's `ExpiringCredentialRefreshingLogin.refreshMs`, without jitter."""
    cases = drawn_cases(seed=59, count=CASES)
    expected = apaches_times(cases)
    assert our_times(cases) == expected
    assert len(set(expected)) > CASES // 5


@pytest.mark.parametrize(("share", "at_ms"), [(0.0, 80_000), (0.5, 82_500), (0.999, 84_995)])
def test_nodes_that_got_tokens_together_replace_them_apart(share: float, at_ms: int) -> None:
    times = TokenTimes(None, NOW_MS + 100_000)
    assert refresh_at_ms(RefreshWindow(), NOW_MS, times, share) == NOW_MS + at_ms


def test_the_life_of_a_token_is_in_its_claims() -> None:
    assert times_of(token({"iat": 10, "exp": 70})) == (10_000, 70_000)
    assert times_of(plain_token({"exp": 70.5})) == (None, 70_500)


@pytest.mark.parametrize(
    "text",
    [
        "opaque",
        "a.b.c",
        plain_token({"iat": 1}),
        plain_token({"exp": "70"}),
        plain_token({"exp": True}),
        plain_token({"exp": 1e400}),
        plain_token([70]),
        plain_token({"exp": 70}) + ".more",
        plain_token({"exp": 70}).rpartition(".")[0],
        "a.\N{EURO SIGN}.",
        pytest.param(f"a.{urlsafe_b64encode(b'[' * 100_000).decode()}.", id="deep"),
    ],
)
def test_what_is_no_web_token_has_no_life(text: str) -> None:
    with pytest.raises(ValueError, match="not a JSON web token"):
        times_of(text)
