"""One start of each make on copies of a directory, and how what they show is to be judged.

The judge is a partition that was not changed: what a make shows of a changed one is right if it is
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.apache.odd_directories.continuing import go_on
from tests.apache.odd_directories.looking import Seen, await_served, committed_offsets, look
from tests.apache.odd_directories.making import DELETED, GROUP, OTHERS, TOPIC, Made
from tests.apache.odd_directories.pair import APACHE, DIRECTORIES, MAKES, OURS, copied, node_over
from tests.process import DidNotStart
from tests.server.wire_client import WireClient

__all__ = ["Outcome", "Start", "both_starts", "differences", "outcome", "start"]

_SMALL = ("leader-epoch-checkpoint", "partition.metadata")
_TIMES_MS = (-1, 0, 1500, 2_500_000, 8_000_000, 30_000_000)


class Start(NamedTuple):
    """What one make did with a directory."""

    refusal: str
    """Its output, empty if it has started."""
    partitions: dict[str, Seen]
    """Before and after producers went on."""
    offsets: Any
    """Committed ones of the group."""


class Outcome(Enum):
    """How the two makes treat a change."""

    SAME = "both show the same, and producers can do the same"
    OURS_IS_WHOLE = "ours shows what an unchanged partition shows, and Apache Kafka does not"
    REFUSED = "ours reports a storage error: the partition is offline until it is repaired"
    OTHER = "anything else"


def both_starts(
    source: Path, target: Path, made: Made, change: Callable[[Path], None]
) -> dict[str, Start]:
    """Change two copies of a directory in the same way, and start a make on each."""

    def start_one(make: str) -> Start:
        folder = copied(source, target / make)
        change(folder)
        return start(make, folder, made)

    with ThreadPoolExecutor(len(MAKES)) as pool:
        return dict(zip(MAKES, pool.map(start_one, MAKES), strict=True))


def start(make: str, folder: Path, made: Made) -> Start:
    """Start, look, let producers go on, look again, and stop."""
    node = node_over(make, folder)
    try:
        node.start()
    except DidNotStart as error:
        return Start(str(error), {}, None)
    topics = {TOPIC: made.partitions, DELETED: OTHERS}
    try:
        with WireClient(node.bootstrap) as client:
            await_served(client, topics)
            seen = look(client, topics, [made.base_ms + each for each in _TIMES_MS])
            offsets = committed_offsets(client, GROUP)
            for partition, steps in go_on(client, made).items():
                seen[partition] |= steps
            for partition, again in look(client, topics, ()).items():
                again.pop("largest time")  # that of a marker, which has the clock's time
                seen[partition] |= {f"{name} afterwards": each for name, each in again.items()}
    finally:
        node.stop()
    for partition, own in seen.items():
        own["files"] = _files(folder, partition)
    return Start("", seen, offsets)


def _files(folder: Path, partition: str) -> dict[str, Any]:
    """Return the sizes of the segments, and the text of the small files, after the stop."""
    found: dict[str, Any] = {}
    for name in DIRECTORIES:
        for file in sorted((folder / name / partition).glob("*")):
            if file.suffix == ".log":
                found[file.name] = file.stat().st_size
            elif file.name in _SMALL and partition.startswith(TOPIC):
                found[file.name] = file.read_text()
    return found


def outcome(both: dict[str, Start], partition: str, unchanged: str) -> Outcome:
    """Return how the makes treat the change of a partition."""
    ours, apache = both[OURS].partitions[partition], both[APACHE].partitions[partition]
    if E.KAFKA_STORAGE_ERROR in (ours["end"]["error"], ours["uncommitted"]["error"]):
        return Outcome.REFUSED
    names = differences(both, partition)
    if not names:
        return Outcome.SAME
    whole = both[OURS].partitions[unchanged]
    is_whole = all(_stripped(ours[name]) == _stripped(whole[name]) for name in names)
    return Outcome.OURS_IS_WHOLE if is_whole and ours != apache else Outcome.OTHER


def differences(both: dict[str, Start], partition: str) -> list[str]:
    """Return the questions that the makes answer differently."""
    one, two = (both[make].partitions[partition] for make in MAKES)
    return [name for name in one | two if one.get(name) != two.get(name)]


def _stripped(value: Any) -> Any:
    """Return what two partitions have alike: no ids of producers, and no times."""
    if isinstance(value, dict):
        return {
            name: [first for _, first in each] if name == "aborted" else _stripped(each)
            for name, each in value.items()
            if name != "time"
        }
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], list):
        return value[0], sorted(each[1:] for each in value[1])
    return value
