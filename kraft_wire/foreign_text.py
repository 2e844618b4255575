"""JSON and regular expressions that others wrote: files, options, answers of peers.

Python gives up on some texts with errors that are not those of a wrong text: a deeply nested one
with RecursionError, a count of thousands of digits with OverflowError. To who reads a foreign text
they are the same: the text is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = ["compiled", "json_value"]


def json_value(
    text: str | bytes,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return the value of a JSON text; the hooks are those of `json.loads`. Errors: ValueError."""
    try:
        return json.loads(text, object_pairs_hook=object_pairs_hook, parse_constant=parse_constant)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def compiled(text: str) -> re.Pattern[str]:
    """Return the pattern of a regular expression. Errors: `re.error`."""
    try:
        return re.compile(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise re.error(str(error)) from error
