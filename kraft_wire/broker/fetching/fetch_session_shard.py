"""One shard of the fetch session cache (KIP-227 "Fetch Session Caching"): slots and eviction.

A session is evicted only by a newer one of the same shard. Candidates are kept in two orders:
by last use (the dictionary's own order, since time does not run backwards) and by value.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final, TypeAlias

from kraft_wire.broker.fetching.fetch_session import FetchSession, PartitionKey, WantedPartition
from kraft_wire.model import ANONYMOUS, Principal, RandomSource

__all__ = ["NO_SESSION", "FetchSessionShard", "PartitionBudget"]

NO_SESSION: Final = 0
"""The session id that says "none"."""

EvictionKey: TypeAlias = tuple[bool, int, int]
"""Value of a session, least first: follower or not, number of partitions, id."""


class PartitionBudget:
    """How many partitions all sessions together may remember; slots alone bound no memory."""

    __slots__ = ("_limit", "used")

    def __init__(self, limit: int) -> None:
        assert limit >= 0, limit
        self._limit = limit
        self.used = 0

    def has_room_for(self, more: int) -> bool:
        """Whether `more` partitions may be remembered now."""
        return self.used + more <= self._limit

    def can_ever_hold(self, count: int) -> bool:
        """Whether a session of `count` partitions is possible at all."""
        return count <= self._limit

    def change(self, more: int) -> None:
        """Account for partitions remembered, or dropped when negative."""
        self.used += more
        assert self.used >= 0, self.used


class FetchSessionShard:
    """The sessions whose ids are in [`first_id`, `end_id`), at most `slots` of them."""

    def __init__(
        self,
        slots: int,
        first_id: int,
        end_id: int,
        eviction_ms: int,
        random_source: RandomSource,
        budget: PartitionBudget,
    ) -> None:
        assert 0 < first_id < end_id, (first_id, end_id)
        self._slots = slots
        self._budget = budget
        self._first_id = first_id
        self._end_id = end_id
        self._eviction_ms = eviction_ms
        self._random_source = random_source
        self._sessions: dict[int, FetchSession] = {}
        self._evictable_by_all: list[EvictionKey] = []
        self._evictable_by_followers: list[EvictionKey] = []
        self.evictions_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session, None when it was never created, was closed or evicted."""
        return self._sessions.get(session_id)

    def maybe_create(
        self,
        partitions: Callable[[], dict[PartitionKey, WantedPartition]],
        size: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        owner: Principal = ANONYMOUS,
    ) -> int:
        """Create a session in a free slot or one of an evicted session; return its id or 0."""
        if not self._budget.can_ever_hold(size):
            return NO_SESSION
        while len(self._sessions) >= self._slots or not self._budget.has_room_for(size):
            if not self._maybe_evict(privileged, size, now_ms):
                return NO_SESSION
        session = FetchSession(
            self._draw_id(),
            partitions(),
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
            owner=owner,
        )
        assert session.cached_size == size, (session.cached_size, size)
        self._sessions[session.session_id] = session
        self._budget.change(size)
        self._enter_orders(session)
        assert len(self._sessions) <= self._slots
        return session.session_id

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Note that a session was used and how large it is now.

        A session that outgrows the budget is closed: its present fetch is served, the next one gets
        FETCH_SESSION_ID_NOT_FOUND, and the client starts over.
        """
        assert self._sessions.get(session.session_id) is session
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session
        session.last_used_ms = now_ms
        size = len(session.partitions)
        # Non-obvious 7: decided when the session is used, as in Kafka, and by no timer.
        is_old = now_ms - session.created_ms > self._eviction_ms
        if size == session.cached_size and is_old == session.is_old:
            return
        growth = size - session.cached_size
        if not self._budget.has_room_for(growth):
            self.remove(session.session_id)
            self.evictions_count += 1
            return
        self._leave_orders(session)
        self._budget.change(growth)
        session.cached_size = size
        session.is_old = is_old
        self._enter_orders(session)

    def remove(self, session_id: int) -> bool:
        """Close a session; return whether there was one."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        self._leave_orders(session)
        self._budget.change(-session.cached_size)
        return True

    def _draw_id(self) -> int:
        while True:
            drawn = self._first_id + self._random_source.below(self._end_id - self._first_id)
            if drawn not in self._sessions:
                return drawn

    def _maybe_evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Make room for a newcomer of `size` partitions; False when every session may stay.

        First the least recently used one, if unused for longer than the eviction time; otherwise
        the least valuable of those that the newcomer may evict, if it is worth strictly less.
        """
        victim = self._stale_session(now_ms)
        if victim is None:
            order = self._evictable_by_followers if privileged else self._evictable_by_all
            if not order or (privileged, size, NO_SESSION) < order[0]:
                return False
            victim = order[0][2]
        removed = self.remove(victim)
        assert removed, victim
        self.evictions_count += 1
        return True

    def _stale_session(self, now_ms: int) -> int | None:
        session = next(iter(self._sessions.values()), None)
        if session is None or now_ms - session.last_used_ms <= self._eviction_ms:
            return None
        return session.session_id

    def _enter_orders(self, session: FetchSession) -> None:
        key = _eviction_key(session)
        if session.is_old or not session.privileged:
            insort(self._evictable_by_followers, key)
        if session.is_old:
            insort(self._evictable_by_all, key)

    def _leave_orders(self, session: FetchSession) -> None:
        key = _eviction_key(session)
        _discard(self._evictable_by_followers, key)
        _discard(self._evictable_by_all, key)


def _eviction_key(session: FetchSession) -> EvictionKey:
    return session.privileged, session.cached_size, session.session_id


def _discard(order: list[EvictionKey], key: EvictionKey) -> None:
    place = bisect_left(order, key)
    if place < len(order) and order[place] == key:
        del order[place]
