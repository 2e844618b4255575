"""RE2, by which the coordinator evaluates regular expressions of subscriptions: in linear time.

The engine is the package google-re2, an extra of this project (`pip install kraft-wire[regex]`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["matcher_of"]

_PROGRAM_BYTES_MAX: Final = 1 << 20
"""Memory that a compiled expression may take."""


@lru_cache(maxsize=256)
def matcher_of(regex: str) -> Callable[[str], bool] | Refusal:
    """Return a function that says whether a whole name matches; INVALID_REGULAR_EXPRESSION."""
    try:
        import re2  # type: ignore[import-untyped]  # google-re2 has no types
    except ImportError:
        return _invalid(regex, 'the extra "regex" of kraft-wire is not installed on the broker')
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PROGRAM_BYTES_MAX
    try:
        compiled = re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0]
        return _invalid(regex, reason.decode() if isinstance(reason, bytes) else str(reason))
    return lambda name: compiled.fullmatch(name) is not None


def _invalid(regex: str, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
    )
