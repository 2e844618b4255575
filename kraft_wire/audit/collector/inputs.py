"""A user's inputs of an audit: which checks, a ledger, high watermarks.

High watermarks come in one of three forms: a `replication-offset-checkpoint` of Kafka, one JSON
object `{"topic": {"0": 23}}` as connectors write offsets, or JSON lines with topic, partition and
offset. A file in another form is refused with its name.
"""

from pathlib import Path
from typing import Final

from kraft_wire.audit.collector.sources import CannotAudit
from kraft_wire.audit.finding import CHECKS
from kraft_wire.audit.ledger import Acknowledged, LedgerError, read_ledger
from kraft_wire.foreign_text import json_value

__all__ = ["checks_of", "read_high_watermarks", "read_ledger_file"]

_MALFORMED: Final = (LookupError, ValueError, TypeError, ArithmeticError, AttributeError)

Watermarks = dict[tuple[str, int], int]


def checks_of(text: str | None) -> tuple[str, ...]:
    """Return the checks of a comma list, all of them for none."""
    if text is None:
        return CHECKS
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in CHECKS]
    if unknown or not names:
        raise CannotAudit(f"--checks {text}: the checks are {', '.join(CHECKS)}")
    return tuple(name for name in CHECKS if name in names)


def read_ledger_file(path: Path) -> dict[tuple[str, int], Acknowledged]:
    """Return the ledger of a file; CannotAudit names the line that is wrong."""
    try:
        with path.open(encoding="utf-8") as lines:
            return read_ledger(lines, str(path))
    except OSError as error:
        raise CannotAudit(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CannotAudit(f"{path}: not UTF-8") from error
    except LedgerError as error:
        raise CannotAudit(str(error)) from error


def read_high_watermarks(path: Path) -> Watermarks:
    """Return the high watermarks of a file, by topic and partition."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CannotAudit(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CannotAudit(f"{path}: not UTF-8") from error
    try:
        return _parsed(text)
    except _MALFORMED as error:
        raise CannotAudit(f"{path}: neither an offset checkpoint nor JSON of offsets") from error


def _parsed(text: str) -> Watermarks:
    lines = [line for line in text.splitlines() if line.strip()]
    if not text.lstrip().startswith("{"):
        words = [line.split() for line in lines[2:]]
        if int(lines[0]) != 0 or int(lines[1]) != len(words):
            raise ValueError(lines[0])
        return {(topic, int(partition)): int(offset) for topic, partition, offset in words}
    try:
        offsets = json_value(text)
    except ValueError:
        offsets = None
    if offsets is None or set(offsets) == {"topic", "partition", "offset"}:
        entries = [json_value(line) for line in lines]
        return {(each["topic"], int(each["partition"])): int(each["offset"]) for each in entries}
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
