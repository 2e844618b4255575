"""Members of streams groups (KIP-1071) on one connection, and topologies for them to bring.

What a node answers is JSON in which lists that Apache takes from hash tables are sorted, and texts
of errors are reduced to their presence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message

__all__ = ["Member", "described", "internal", "shown", "subtopology", "tasks", "topology"]

R = TypeVar("R", bound=Message)
LEAVE_EPOCH: Final = -1
TEXTS: Final = ("errorMessage", "statusDetail")
SORTED: Final[Mapping[str, str]] = {
    "activeTasks": "subtopologyId",
    "standbyTasks": "subtopologyId",
    "warmupTasks": "subtopologyId",
    "subtopologies": "subtopologyId",
    "stateChangelogTopics": "name",
    "repartitionSourceTopics": "name",
    "activePartitions": "topic",
    "standbyPartitions": "topic",
    "members": "memberId",
    "groups": "groupId",
    "clientTags": "key",
    "topicConfigs": "key",
}
"""Lists of structs, and the field that sorts them."""


def shown(answer: Message, version: int = 0) -> Any:
    """Return the JSON of an answer or a record in which only facts are left."""
    return _plain(message_to_json(answer, version), "")


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each, key) for key, each in value.items()}
    if isinstance(value, list):
        found = [_plain(each, "") for each in value]
        if name == "partitionsByUserEndpoint":
            return sorted(found, key=lambda each: str(each["userEndpoint"]))
        if name in SORTED and all(isinstance(each, dict) for each in found):
            return sorted(found, key=lambda each: (str(each[SORTED[name]]), str(each)))
        return found
    return value and "(text)" if name in TEXTS else value


def internal(name: str, partitions: int = 0, replication: int = 0, **configs: str) -> TopicInfo:
    """An internal topic; names of configs have `_` for `.`."""
    settings = [KeyValue(key=k.replace("_", "."), value=v) for k, v in sorted(configs.items())]
    return TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication,
        topic_configs=settings,
    )


def subtopology(
    name: str = "0",
    sources: Sequence[str] = (),
    *,
    repartitions: Sequence[TopicInfo] = (),
    sinks: Sequence[str] = (),
    changelogs: Sequence[TopicInfo] = (),
    copartitioned: bool = False,
) -> Subtopology:
    """A subtopology; `copartitioned`: all that it reads is one copartition group."""
    group = CopartitionGroup(
        source_topics=list(range(len(sources))),
        repartition_source_topics=list(range(len(repartitions))),
    )
    return Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_source_topics=list(repartitions),
        repartition_sink_topics=list(sinks),
        state_changelog_topics=list(changelogs),
        copartition_groups=[group] if copartitioned else [],
    )


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    """A topology."""
    return Topology(epoch=epoch, subtopologies=list(subtopologies))


def tasks(owned: Mapping[str, Sequence[int]]) -> list[TaskIds]:
    """Tasks by subtopology."""
    return [TaskIds(subtopology_id=k, partitions=list(v)) for k, v in owned.items()]


def _by_subtopology(found: list[ResponseTaskIds]) -> dict[str, tuple[int, ...]]:
    return {each.subtopology_id: tuple(each.partitions) for each in found}


class Member:
    """One member; `epoch` is that of the last answer without an error."""

    def __init__(
        self,
        node: BrokerConnection,
        group: str,
        member_id: str,
        process: str | None = None,
        **always: Any,
    ) -> None:
        self._node = node
        self._group = group
        self._member_id = member_id
        self._process = process or f"process of {member_id}"
        self._always = always
        self.epoch = 0
        self.active: dict[str, tuple[int, ...]] = {}
        """The tasks of the last assignment, by subtopology."""
        self.standby: dict[str, tuple[int, ...]] = {}
        self.last = StreamsGroupHeartbeatResponse()

    def moves_to(self, node: BrokerConnection) -> None:
        """Go on with another connection."""
        self._node = node

    def joins(self, what: Topology, **more: Any) -> Any:
        """Join, or join again."""
        first = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "topology": what,
            "process_id": self._process,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        return self.sends(**{**first, **self._always, **more})

    def beats(self, **more: Any) -> Any:
        """Send a heartbeat without news."""
        return self.sends(**{"member_epoch": self.epoch, **more})

    def owns(
        self,
        active: Mapping[str, Sequence[int]],
        standby: Mapping[str, Sequence[int]] | None = None,
    ) -> Any:
        """Send a heartbeat with the tasks that the member has."""
        return self.beats(
            active_tasks=tasks(active), standby_tasks=tasks(standby or {}), warmup_tasks=[]
        )

    def leaves(self) -> Any:
        """Leave."""
        return self.beats(member_epoch=LEAVE_EPOCH)

    def sends(self, **fields: Any) -> Any:
        """Send exactly this."""
        request = StreamsGroupHeartbeatRequest(
            **{"group_id": self._group, "member_id": self._member_id, **fields}
        )
        self.last = self._node.send(request, StreamsGroupHeartbeatResponse)
        if not self.last.error_code:
            self.epoch = self.last.member_epoch
        if self.last.active_tasks is not None:
            self.active = _by_subtopology(self.last.active_tasks)
            self.standby = _by_subtopology(self.last.standby_tasks or [])
        return shown(self.last)


def described(node: BrokerConnection, *groups: str, operations: bool = False) -> Any:
    """Describe groups."""
    request = StreamsGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )
    return shown(node.send(request, StreamsGroupDescribeResponse))
