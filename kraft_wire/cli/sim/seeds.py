"""Which seeds a command is about, as people write them."""

from typing import Final

from kraft_wire.node.config.sources import is_number_up_to

__all__ = ["CannotRun", "check_focus", "seed_range"]

_OF_CLUSTERS: Final = ("transactions", "groups", "eligible-replicas", "directories", "tools")
_KNOWN: Final = ("membership", *_OF_CLUSTERS, "odd-answers")
_SEED_MAX: Final = (1 << 63) - 1
_SEEDS_MAX: Final = 10_000_000


class CannotRun(Exception):
    """Why the command cannot do its work, as one line."""


def check_focus(focus: str | None, brokers: int | None) -> None:
    """Raise CannotRun for an unknown --focus, or one that does not go with --brokers as it is."""
    if focus is not None and focus not in _KNOWN:
        raise CannotRun(f"--focus {focus}: expected one of {', '.join(_KNOWN)}")
    if focus == "membership" and brokers is not None:
        raise CannotRun("--focus membership excludes --brokers")
    if focus in _OF_CLUSTERS and brokers is None:
        raise CannotRun(f"--focus {focus} needs --brokers")


def seed_range(text: str) -> range:
    """Return the seeds of `A:B`, half-open; raises CannotRun."""
    first, colon, last = text.partition(":")
    is_range = colon and all(is_number_up_to(each, _SEED_MAX) for each in (first, last))
    if not is_range or int(first) >= int(last):
        raise CannotRun(f"--seeds {text}: expected two numbers A:B with A < B")
    found = range(int(first), int(last))
    if len(found) > _SEEDS_MAX:
        raise CannotRun(f"--seeds {text}: a campaign has at most {_SEEDS_MAX:,} seeds")
    return found
