"""Lines about appends that full disks refuse: the first at once, then a count once a minute."""

from types import SimpleNamespace
from typing import Any

from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.node.disks.refused_appends import RefusedAppends

PARTITION = TopicPartition("t", 0)


class Space:
    """A disk with 5 free bytes of which 9 are needed, or one that does not answer."""

    needed_bytes = 9

    def __init__(self, *, is_readable: bool) -> None:
        self._is_readable = is_readable

    def free_bytes(self) -> int:
        if not self._is_readable:
            raise StorageError("statvfs", "/b", "gone")
        return 5


def directory(path: str, *, is_readable: bool = True) -> Any:
    """A log directory on a full disk."""
    return SimpleNamespace(path=path, space=Space(is_readable=is_readable))


def test_refusals_are_a_line_at_once_and_a_count_each_minute() -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    refused = RefusedAppends(lambda name, **fields: lines.append((name, fields)))
    first, second = directory("/a"), directory("/b", is_readable=False)
    refused.tick(5_000)
    for each in (first, first, second, first):
        refused.note(each, PARTITION)
    at_once = {"partition": PARTITION, "reason": "disk_full", "needed_bytes": 9}
    assert lines == [
        ("append_refused", {"directory": "/a", "free_bytes": 5, **at_once}),
        ("append_refused", {"directory": "/b", "free_bytes": "-", **at_once}),
    ]
    lines.clear()
    for now_ms in (100_000, 159_999):
        refused.tick(now_ms)
    assert lines == []
    refused.note(second, PARTITION)
    refused.tick(161_500)
    assert lines == [
        ("appends_refused", {"directory": "/a", "count": 2, "seconds": 61}),
        ("appends_refused", {"directory": "/b", "count": 1, "seconds": 61}),
    ]
    lines.clear()
    refused.tick(300_000)
    refused.note(second, PARTITION)
    assert [name for name, _ in lines] == ["append_refused"]
    refused.tick(301_000)
    refused.tick(360_999)
    refused.tick(361_000)
    refused.note(second, PARTITION)
    assert [name for name, _ in lines] == ["append_refused"] * 2
    assert refused.count == 7


def test_minute_begins_with_the_first_tick_after_a_refusal() -> None:
    lines: list[str] = []
    refused = RefusedAppends(lambda name, **_: lines.append(name))
    refused.note(directory("/a"), PARTITION)
    refused.note(directory("/a"), PARTITION)
    refused.tick(0)
    refused.tick(59_999)
    assert lines == ["append_refused"]
    refused.tick(60_000)
    assert lines == ["append_refused", "appends_refused"]
