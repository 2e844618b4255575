"""Patterns by which a client-metrics subscription selects clients: `name=regular expression`.

KIP-714. Brokers of Apache Kafka compile the recorded expressions as Java's, so expressions that
Java refuses must not be recorded. Python's syntax is nearly the same and is only used to validate:
no text is matched here. It also refuses syntax that only Java has, such as `\\p{L}`.
"""

import re
from typing import Final

from kraft_wire.controller.refusal import Refusal
from kraft_wire.foreign_text import compiled
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_client_pattern"]

_NAMES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""Names of the properties by which a subscription may select clients."""
_BEYOND_ASCII: Final = re.compile(r"\\u[0-9a-fA-F]{4}|[^\x00-\x7f]")
_PYTHONS_ALONE: Final = ("\\U", "\\N", "(?P")
"""Syntax that Java does not have, or that means something else in Java."""


def check_client_pattern(pattern: str) -> None:
    """Refuse with INVALID_CONFIG a text other than `name=expression`, as release 4.3.1 does.

    It splits at each `=` and drops empty parts at the end.
    """
    name, *expressions = (part.strip() for part in pattern.rstrip("=").split("="))
    if len(expressions) != 1 or name not in _NAMES or not _is_expression(expressions[0]):
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _is_expression(text: str) -> bool:
    """Return whether a text is a regular expression, in bounded time.

    A character class with a wide range takes milliseconds to compile, and a request may have
    thousands. So characters beyond ASCII are replaced by its last one, which keeps ranges in order.
    """
    if any(each in text for each in _PYTHONS_ALONE):
        return False
    try:
        compiled(_BEYOND_ASCII.sub("\x7f", text))
    except re.error:
        return False
    return True
