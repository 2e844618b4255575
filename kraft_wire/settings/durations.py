"""ISO 8601 durations of days and less, as Java's `Duration.parse` reads them."""

import re
from typing import Final

__all__ = ["duration_ms"]

_FORM: Final = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?"
    r"(?:(?-i:t|T(?=.))(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS_S: Final = (86_400, 3_600, 60, 1)
_SECONDS_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = 32


def duration_ms(text: str) -> int | None:
    """Return a duration in whole milliseconds, None for a text that is not one.

    At least one part is there, and one behind a T; Java does not ask for one behind a small t. Each
    part may have a sign, and so may the whole. More seconds than a Java long can hold are refused.
    """
    found = _FORM.fullmatch(text)
    if found is None or any(len(part or "") > _DIGITS_MAX for part in found.groups()):
        return None
    sign, *whole, fraction = found.groups()
    if not any(whole):
        return None
    seconds = 0
    for number, unit_s in zip(whole, _UNITS_S, strict=True):
        part_s = int(number or 0) * unit_s
        seconds += part_s
        if max(abs(part_s), abs(seconds)) > _SECONDS_MAX:
            return None
    nanoseconds = int((fraction or "").ljust(9, "0"))
    if (whole[-1] or "").startswith("-"):
        nanoseconds = -nanoseconds
    total = seconds * 1_000_000_000 + nanoseconds
    return (-total if sign == "-" else total) // 1_000_000
