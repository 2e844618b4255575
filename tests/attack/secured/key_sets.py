"""Attacks by the server that the keys of web tokens come from: slow, huge, redirecting."""

from __future__ import annotations

import time

from kraft_wire.wire.generated.metadata import MetadataRequest
from tests.attack.secured.target import KEY_PATHS, SecuredTarget
from tests.key_server import ELSEWHERE
from tests.node.security.tokens import message, token

BAD_ANSWERS = ("/slow", "/large", "/endless", "/to-a-file", "/to-the-link", "/moved")
_ENDED_S = 20.0
"""How long an exchange may take: 10 s for the whole of it, and what a busy machine adds."""
_FLOOD_S = 5.0
"""Enough for five fetches of a node that would make one whenever it looks."""


def bad_answers(target: SecuredTarget) -> str:
    """S26: the node ends each exchange in time, and logs why; clients still log in."""
    server = target.key_server
    for path in BAD_ANSWERS:
        position = target.log_size()
        server.answers_as = path
        try:
            if seen := _while_it_lasts(target, position):
                return f"{path}: {seen}"
        finally:
            server.answers_as = ""
        if not _logged(target, position, "key_set_fetched"):
            return f"{path}: the keys are not fetched again"
    return "a redirect was followed" if ELSEWHERE in server.asked else "refused"


def _while_it_lasts(target: SecuredTarget, position: int) -> str:
    """Log in until the node has ended the exchange; return what was wrong."""
    deadline = time.monotonic() + _ENDED_S
    while "key_set_failed" not in target.log_since(position):
        if time.monotonic() > deadline:
            return "the node does not end it"
        target.note_memory()
        if _bears("ann", "rsa", target) != "0":
            return "a token of a known key is refused"
        with target.logged_in("ann", "NARROW") as line:
            if line.ask(MetadataRequest(topics=[]), 12) is None:
                return "another listener does not answer"
    return ""


def unknown_keys(target: SecuredTarget) -> str:
    """S26: tokens of keys that the node does not know make it fetch once a minute at most."""
    asked = target.key_server.asked
    before = asked.count(KEY_PATHS["secure"])
    ends, outcomes = time.monotonic() + _FLOOD_S, []
    while time.monotonic() < ends:
        outcomes.append(_bears("ann", f"unknown-{len(outcomes)}", target, "SECURE"))
    fetched = asked.count(KEY_PATHS["secure"]) - before
    return "+".join(sorted(set(outcomes))) if fetched == 1 else f"{fetched} fetches"


def _bears(user: str, key_id: str, target: SecuredTarget, listener: str = "LOGIN") -> str:
    """Log in with a token that names `key_id`; the key `rsa` has signed it."""
    now = round(time.time())
    shown = message(token({"sub": user, "iat": now, "exp": now + 600}, kid=key_id))
    with target.line(listener, target.trusting() if listener == "SECURE" else None) as line:
        line.shake("OAUTHBEARER")
        answer = line.show(shown)
        if answer is not None and bytes(answer.auth_bytes):
            answer = line.show(b"\x01")
    return "close" if answer is None else str(answer.error_code)


def _logged(target: SecuredTarget, position: int, event: str) -> bool:
    deadline = time.monotonic() + _ENDED_S
    while event not in target.log_since(position):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
