"""The pattern of transactional ids in ListTransactions (KIP-1152): whole ids, as RE2 matches."""

import re
from collections.abc import Callable

__all__ = ["id_matcher"]


def id_matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Return what tells whether an id matches; no pattern matches all. None: no valid pattern."""
    if not pattern:
        return lambda name: True
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda name: compiled.fullmatch(name) is not None
