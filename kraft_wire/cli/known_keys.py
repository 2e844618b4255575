"""Checks a key that a command line sets: a typo there is an error, in a file it is a warning."""

from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.node.config.authorizer import AUTHORIZER_KEYS
from kraft_wire.settings.broker import BROKER_KEYS, DYNAMIC_BROKER_KEYS, is_listener_key

__all__ = ["unknown_key"]


def unknown_key(key: str) -> str | None:
    """Return why a key of a broker is refused; None for a known key."""
    known = (*BROKER_KEYS, *AUTHORIZER_KEYS)
    if key in known or key in DYNAMIC_BROKER_KEYS or is_listener_key(key):
        return None
    return unknown_name("key", key, known)
