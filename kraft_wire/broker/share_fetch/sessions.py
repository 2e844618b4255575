"""Share sessions (KIP-932): all sessions of one broker, by group and member.

Pure state: no clock, no log, no answers. The epoch of a request decides:

    epoch 0         opens a session with the listed partitions, in place of any that the member had
    epoch n >= 1    continues the session: adds listed partitions, drops forgotten ones
    epoch -1        acknowledges, and closes the session after that

How the handlers use it:

1. ShareFetch calls `begin_fetch`. SHARE_SESSION_LIMIT_REACHED is answered after MaxWaitMs, other
   errors at once. The returned `ShareFetchContext` has the `partitions`; those that exist and may
   be read are fetched in the order of `rotated(partitions, context.epoch)`.
2. When the results are there: `is_outdated` means INVALID_SHARE_SESSION_EPOCH for the whole answer,
   which then has no partitions. Otherwise the answer has the results that `listed` returns, and
   `answered` is called with them. A throttled answer is empty, and `answered` is not called.
3. ShareAcknowledge calls `begin_acknowledge`. It opens no session and adds no partitions.
4. After the acknowledgements of a request with epoch -1, either handler calls `close` and releases
   the member's records in the partitions that it returns. A session that another one replaces
   keeps its records acquired until their locks end, as in Kafka.
5. The end of a connection is `connection_closed`: records of the closed sessions are released,
   then the share partitions of the groups without sessions are dropped from memory.

A session has no expiry. It takes about 250 bytes, and 250 for each partition.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kraft_wire.broker.fetching.fetch_session import TopicNames
from kraft_wire.broker.share_fetch.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    PartitionKey,
    SessionKey,
    SessionPartition,
    ShareFetchContext,
    ShareSession,
    next_epoch,
)
from kraft_wire.frozen import slotted
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest

__all__ = ["ClosedConnection", "ShareSessions"]


class ClosedConnection(NamedTuple):
    """What the end of a connection leaves behind."""

    sessions: list[ShareSession]
    """The sessions that it had opened, closed now."""
    empty_groups: list[str]
    """Groups of such sessions, closed now or before, that have none left on this broker."""


@slotted(eq=False)
class _Connection:
    """The sessions that one connection has opened."""

    sessions: dict[SessionKey, None]
    last_group_id: str
    """Of the newest session, which may be closed already."""


class ShareSessions:
    """The sessions of one broker, at most as many as the limit at their creation."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """`limit` returns `group.share.max.share.sessions`."""
        self._limit = limit
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._connections: dict[int, _Connection] = {}
        self._group_sizes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_count(self) -> int:
        """`SharePartitionsCount`: the partitions of all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        """Return the open session of a member."""
        return self._sessions.get(SessionKey(group_id, member_id))

    def begin_fetch(
        self,
        group_id: str,
        member_id: str,
        request: ShareFetchRequest,
        connection_id: int,
        topic_names: TopicNames,
    ) -> ShareFetchContext | ErrorCode:
        """Accept a ShareFetch, or return the error of the whole of it.

        Errors, first match wins: INVALID_REQUEST (acknowledgements in a request that opens a
        session), UNKNOWN_SERVER_ERROR (it lists a partition twice), SHARE_SESSION_LIMIT_REACHED;
        in an open session SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        key = SessionKey(group_id, member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            return self._open(key, request, connection_id, topic_names)
        session = self._expected(key, request.share_session_epoch)
        if isinstance(session, ErrorCode):
            return session
        if request.share_session_epoch != FINAL_EPOCH:
            session.update(_listed(request, topic_names, are_new=True), _forgotten(request))
            # At acceptance: a copy that arrives while this request is parked is refused.
            session.epoch = next_epoch(session.epoch)
        return ShareFetchContext(request.share_session_epoch, session)

    def begin_acknowledge(self, group_id: str, member_id: str, epoch: int) -> ErrorCode:
        """Accept a ShareAcknowledge, or return the error of the whole of it.

        Errors, first match wins: INVALID_SHARE_SESSION_EPOCH (0), SHARE_SESSION_NOT_FOUND,
        INVALID_SHARE_SESSION_EPOCH.
        """
        if epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session = self._expected(SessionKey(group_id, member_id), epoch)
        if isinstance(session, ErrorCode):
            return session
        if epoch != FINAL_EPOCH:
            session.epoch = next_epoch(session.epoch)
        return ErrorCode.NONE

    def close(self, group_id: str, member_id: str) -> list[SessionPartition] | None:
        """Close a session; return its partitions, or None without a session.

        The session may have gone while the acknowledgements of its last request were written.
        """
        session = self._remove(SessionKey(group_id, member_id))
        return None if session is None else list(session.partitions.values())

    def connection_closed(self, connection_id: int) -> ClosedConnection:
        """Close the sessions that a connection has opened."""
        connection = self._connections.pop(connection_id, None)
        if connection is None:
            return ClosedConnection([], [])
        closed = [self._sessions[key] for key in connection.sessions]
        for session in closed:
            self._remove(session.key)
        groups = dict.fromkeys(session.key.group_id for session in closed)
        groups[connection.last_group_id] = None
        return ClosedConnection(closed, [each for each in groups if each not in self._group_sizes])

    def clear(self) -> None:
        """Drop every session, because share groups are switched off."""
        for key in list(self._sessions):
            self._remove(key)

    def _open(
        self,
        key: SessionKey,
        request: ShareFetchRequest,
        connection_id: int,
        topic_names: TopicNames,
    ) -> ShareFetchContext | ErrorCode:
        if any(each.acknowledgement_batches for top in request.topics for each in top.partitions):
            return ErrorCode.INVALID_REQUEST
        self._remove(key)
        listed = list(_listed(request, topic_names, are_new=False))
        partitions = {each.key: each for each in listed}
        if len(partitions) < len(listed):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if len(self._sessions) >= self._limit():
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(key, connection_id, next_epoch(INITIAL_EPOCH), partitions)
        self._add(session)
        return ShareFetchContext(INITIAL_EPOCH, session, listed)

    def _expected(self, key: SessionKey, epoch: int) -> ShareSession | ErrorCode:
        """Return the session whose next request has this epoch; the last one may have any."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch not in (FINAL_EPOCH, session.epoch):
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return session

    def _add(self, session: ShareSession) -> None:
        group_id = session.key.group_id
        self._sessions[session.key] = session
        self._group_sizes[group_id] = self._group_sizes.get(group_id, 0) + 1
        connection = self._connections.get(session.connection_id)
        if connection is None:
            connection = self._connections[session.connection_id] = _Connection({}, group_id)
        connection.sessions[session.key] = None
        connection.last_group_id = group_id

    def _remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        connection = self._connections.get(session.connection_id)
        if connection is not None:
            del connection.sessions[key]
        self._group_sizes[key.group_id] -= 1
        if not self._group_sizes[key.group_id]:
            del self._group_sizes[key.group_id]
        return session


def _listed(
    request: ShareFetchRequest, topic_names: TopicNames, *, are_new: bool
) -> Iterator[SessionPartition]:
    """Return the listed partitions; those that are new to an open session are owed an answer."""
    for topic in request.topics:
        name = topic_names(topic.topic_id)
        for each in topic.partitions:
            yield SessionPartition(topic.topic_id, each.partition_index, name, are_new)


def _forgotten(request: ShareFetchRequest) -> Iterator[PartitionKey]:
    for topic in request.forgotten_topics_data:
        for number in topic.partitions:
            yield topic.topic_id, number
