"""The meters of one kind of quota, by user and client id, or by address (KIP-13, KIP-55, KIP-612).

A meter begins with the first value of its clients. It is dropped after an hour without one, as in
Kafka, and the longest unused one when there are too many: client ids are the clients' choice.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from kraft_wire.node.quotas.levels import Levels, Scope

__all__ = ["METERS_MAX", "Kept", "Meters"]

METERS_MAX: Final = 10_000
_UNUSED_MS_MAX: Final = 3_600_000

_Key = TypeVar("_Key", bound=Hashable)
_Meter = TypeVar("_Meter")


class Kept(Generic[_Key, _Meter]):
    """Meters by key, the longest unused first."""

    __slots__ = ("_meters", "_new")

    def __init__(self, new: Callable[[], _Meter]) -> None:
        """`new` makes a meter without values."""
        self._new = new
        self._meters: dict[_Key, tuple[_Meter, int]] = {}
        """Each with the time of its last use."""

    def __len__(self) -> int:
        return len(self._meters)

    def at(self, key: _Key, now_ms: int) -> _Meter:
        """Return the meter of a key, which is new if it has none."""
        meter, _ = self._meters.pop(key, (None, 0))
        if meter is None:
            self._drop_unused(now_ms)
            meter = self._new()
        self._meters[key] = meter, now_ms
        return meter

    def newest(self, number_max: int) -> Iterator[tuple[_Key, _Meter]]:
        """Yield the meters that were used last, without using them."""
        for key in islice(reversed(self._meters), number_max):
            yield key, self._meters[key][0]

    def _drop_unused(self, now_ms: int) -> None:
        """Make room for another meter."""
        while self._meters:
            key = next(iter(self._meters))
            is_unused = now_ms - self._meters[key][1] > _UNUSED_MS_MAX
            if not is_unused and len(self._meters) < METERS_MAX:
                return
            del self._meters[key]


class Meters(Generic[_Meter]):
    """Meters of users and client ids, with the quotas that bound them."""

    __slots__ = ("_kept", "levels")

    def __init__(self, new: Callable[[], _Meter]) -> None:
        """`new` makes a meter without values."""
        self.levels = Levels()
        """The quotas; replaced as a whole when they change. Meters keep their values."""
        self._kept: Kept[Scope, _Meter] = Kept(new)

    def __len__(self) -> int:
        return len(self._kept)

    def newest(self, number_max: int) -> Iterator[tuple[Scope, _Meter]]:
        """Yield the meters that were used last; none without a quota."""
        return self._kept.newest(number_max if self.levels.is_enabled else 0)

    def of(self, user: str, client_id: str, now_ms: int) -> tuple[_Meter, float | None]:
        """Return the meter of a client and its bound, None without one."""
        scope = self.levels.scope(user, client_id)
        return self._kept.at(scope, now_ms), self.levels.limit(scope)
