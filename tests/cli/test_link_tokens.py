"""The token of a node's links is replaced in time, and asked for again while there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kraft_wire.cli.server.link_tokens import LinkToken
from kraft_wire.login.token_refresh import RefreshWindow
from kraft_wire.node.config.token_settings import LinkTokenSettings
from kraft_wire.node.disks.opening import StartError
from tests.node.security.tokens import plain_token
from tests.waiting import HANG_S

NOW_MS = 1_700_000_000_000
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


class Clockwork:
    """A loop that the test turns: timers are kept, and calls of other threads made at once."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.called = Event()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((seconds, call))

    def call_soon_threadsafe(self, call: Callable[..., None], *arguments: object) -> None:
        call(*arguments)
        self.called.set()


class Story:
    """One token in a file, its loop, and the log lines."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "token"
        self.loop = Clockwork()
        self.lines: list[tuple[str, str]] = []
        self.now_ms = NOW_MS

    def write(self, life_s: int) -> str:
        """Put a token into the file that begins now."""
        now_s = self.now_ms // 1_000
        text = plain_token({"sub": "node", "iat": now_s, "exp": now_s + life_s}, signature="s")
        self.file.write_text(text)
        return text

    def begin(self) -> LinkToken:
        keys = {
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.oauthbearer.token.endpoint.url": self.file.as_uri(),
        }
        settings = LinkTokenSettings(keys, {}, RefreshWindow(0.8, 0.0, 1, 2))
        loop: Any = self.loop
        return LinkToken(settings, "INSIDE", loop, self._report, lambda: self.now_ms)

    def _report(self, name: str, **fields: object) -> None:
        self.lines.append((name, str(getattr(fields["reason"], "text", ""))))

    def turn(self) -> float:
        """Let the only timer come; return how long it was."""
        [(seconds, call)] = self.loop.timers
        self.loop.timers.clear()
        self.now_ms += int(seconds * 1_000)
        self.loop.called.clear()
        call()
        assert self.loop.called.wait(HANG_S)
        return seconds


def test_each_token_is_replaced_at_its_own_time(tmp_path: Path) -> None:
    story = Story(tmp_path)
    first = story.write(100)
    token = story.begin()
    assert token.shown() == first
    second = story.write(1_000)
    assert story.turn() == 80
    assert token.shown() == second
    story.write(5_000)
    assert story.turn() == 720, "80 % of the life that the token says, 80 s after its begin"
    assert story.lines == []


def test_the_token_stays_while_there_is_no_other_and_one_line_says_so(tmp_path: Path) -> None:
    story = Story(tmp_path)
    first = story.write(100)
    token = story.begin()
    for wrong in ("", "opaque", "not a token"):
        story.file.write_text(wrong)
        story.turn()
        assert token.shown() == first
    [(seconds, _)] = story.loop.timers
    assert seconds == 10
    assert [name for name, _ in story.lines] == ["link_token_failed"]
    newer = story.write(100)
    story.turn()
    assert token.shown() == newer
    story.file.unlink()
    story.turn()
    assert [name for name, _ in story.lines] == ["link_token_failed"] * 2


def test_a_token_that_has_expired_is_named_and_asked_for_again(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.write(-1)
    story.begin()
    assert story.lines == [("link_token_failed", "the token has expired; are the clocks the same?")]
    [(seconds, _)] = story.loop.timers
    assert seconds == 10


@pytest.mark.parametrize(
    ("text", "words"), [("", "has no token"), ("opaque", "not a JSON web token")]
)
def test_the_first_token_is_part_of_the_start(tmp_path: Path, text: str, words: str) -> None:
    story = Story(tmp_path)
    story.file.write_text(text)
    with pytest.raises(StartError, match=f"links to listener INSIDE: .*{words}"):
        story.begin()
