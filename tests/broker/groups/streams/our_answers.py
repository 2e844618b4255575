"""What our modules make of a question, in the form of the answers of Apache's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.assignors.spec import (
    NUM_STANDBY_REPLICAS,
    StreamsGroupSpec,
    StreamsMemberSpec,
    TaskAssignorFailed,
)
from kraft_wire.broker.groups.streams.assignors.sticky import assign
from kraft_wire.broker.groups.streams.endpoint_partitions import endpoint_partitions
from kraft_wire.broker.groups.streams.member import MemberState, StreamsMember
from kraft_wire.broker.groups.streams.reconciliation import reconciled
from kraft_wire.broker.groups.streams.task_processes import TaskProcesses
from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple
from kraft_wire.broker.groups.streams.topology.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
    configure,
)
from kraft_wire.broker.groups.streams.topology.failures import TopologyRefused
from kraft_wire.metadata.image import MetadataImage, TopicImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.generated.streams_group_heartbeat import ResponseEndpoint, TopicPartition
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue
from kraft_wire.wire.json_form import message_from_json
from tests.broker.groups.harness import image_of, partition_led

Answer = dict[str, Any]


def our_answer(question: Mapping[str, Any]) -> Answer:
    """Return the answer to a question of any kind."""
    try:
        if question["kind"] == "configure":
            return configured_answer(_configure(question))
        if question["kind"] == "reconcile":
            return _reconcile(question)
        return _assign(question) if question["kind"] == "assign" else _endpoint(question)
    except TopologyRefused as refused:
        return {"refused": [int(refused.refusal.error), refused.refusal.message]}
    except TaskAssignorFailed as failed:
        return {"failed": str(failed)}


def topics_image(counts: Mapping[str, int]) -> MetadataImage:
    """Return metadata with topics of so many partitions."""
    topics: dict[str, TopicImage] = {}
    for number, (name, count) in enumerate(counts.items(), 1):
        partitions = {each: partition_led(each) for each in range(count)}
        topics[name] = TopicImage(name, Uuid(number.to_bytes(16, "big")), partitions)
    return image_of(topics)


def configured_answer(made: ConfiguredTopology) -> Answer:
    """Return a configured topology as Apache's is told."""
    failure = made.failure
    subtopologies = made.subtopologies
    return {
        "subtopologies": None
        if subtopologies is None
        else [_subtopology(name, each) for name, each in subtopologies.items()],
        "create": [
            [
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                [[config.name, config.value] for config in topic.configs],
            ]
            for topic in made.internal_topics_to_create.values()
        ],
        "failure": None if failure is None else [int(failure.status), failure.message],
    }


def _configure(question: Mapping[str, Any]) -> ConfiguredTopology:
    topology = message_from_json(
        message_table("StreamsGroupTopologyValue"), question["topology"], 0
    )
    assert isinstance(topology, StreamsGroupTopologyValue)
    return configure(topology, 7, topics_image(question["topics"]))


def _subtopology(subtopology_id: str, made: ConfiguredSubtopology) -> Answer:
    return {
        "id": subtopology_id,
        "tasks": made.number_of_tasks,
        "sources": list(made.source_topics),
        "sinks": list(made.repartition_sinks),
        "repartitions": _topics(made.repartition_sources),
        "changelogs": _topics(made.changelogs),
    }


def _topics(topics: Mapping[str, InternalTopic]) -> list[Any]:
    return [
        [
            name,
            each.partitions,
            each.replication_factor or 0,
            [list(x) for x in each.configs.items()],
        ]
        for name, each in topics.items()
    ]


def _tasks(listed: Mapping[str, list[int]]) -> Tasks:
    return {subtopology_id: frozenset(each) for subtopology_id, each in listed.items()}


def _assign(question: Mapping[str, Any]) -> Answer:
    members: JavaHashMap[str, StreamsMemberSpec] = JavaHashMap()
    for each in question["members"]:
        active, standby = _tasks(each["active"]), _tasks(each["standby"])
        members[each["id"]] = StreamsMemberSpec(
            None, None, each["process"], {}, active, standby, {}
        )
    replicas = question["replicas"]
    configs = {} if replicas is None else {NUM_STANDBY_REPLICAS: replicas}
    topology = {
        subtopology_id: ConfiguredSubtopology(tasks, (), {}, (), _store() if stateful else {})
        for subtopology_id, (tasks, stateful) in question["topology"].items()
    }
    targets = assign(StreamsGroupSpec(members, configs), topology)
    return {
        "targets": {
            member_id: {kind: _listed(each) for kind, each in target._asdict().items()}
            for member_id, target in targets.items()
        }
    }


def _store() -> dict[str, InternalTopic]:
    return {"store": InternalTopic("store", 1, None, {})}


def _listed(tasks: Tasks) -> dict[str, list[int]]:
    return {subtopology_id: sorted(each) for subtopology_id, each in tasks.items()}


def _endpoint(question: Mapping[str, Any]) -> Answer:
    made = endpoint_partitions(
        ResponseEndpoint(host="host", port=9),
        _tasks(question["active"]),
        _tasks(question["standby"]),
        _configure(question).subtopologies,
        topics_image(question["topicsThen"]),
    )
    return {
        "active": _partitions(made.active_partitions),
        "standby": _partitions(made.standby_partitions),
    }


def _partitions(listed: list[TopicPartition]) -> list[Any]:
    return [[each.topic, each.partitions] for each in listed]


def _reconcile(question: Mapping[str, Any]) -> Answer:
    given = question["member"]
    member = StreamsMember(
        "member",
        process_id=given["process"],
        state=MemberState.of(given["state"]),
        member_epoch=given["epoch"],
        previous_member_epoch=given["previous"],
        assigned=_assigned(given["assigned"]),
        pending_revocation=_assigned(given["pending"]),
    )
    owned = None if question["owned"] is None else _tuple(question["owned"])
    processes = _processes(question["holders"])
    after = reconciled(member, question["epoch"], _tuple(question["target"]), owned, processes)
    if isinstance(after, Refusal):
        return {"refused": [int(after.error), after.message]}
    return {
        "state": int(after.state),
        "epoch": after.member_epoch,
        "previous": after.previous_member_epoch,
        "assigned": _assigned_answer(after.assigned),
        "pending": _assigned_answer(after.pending_revocation),
    }


def _tuple(kinds: Mapping[str, Any]) -> TasksTuple:
    return TasksTuple(*(_tasks(kinds[kind]) for kind in TasksTuple._fields))


def _assigned(kinds: Mapping[str, Any]) -> AssignedTasks:
    active = {
        each: {int(partition): epoch for partition, epoch in epochs.items()}
        for each, epochs in kinds["active"].items()
    }
    return AssignedTasks(active, _tasks(kinds["standby"]), _tasks(kinds["warmup"]))


def _assigned_answer(tasks: AssignedTasks) -> Answer:
    active = {
        each: {str(partition): epoch for partition, epoch in epochs.items()}
        for each, epochs in tasks.active.items()
    }
    return {"active": active, "standby": _listed(tasks.standby), "warmup": _listed(tasks.warmup)}


def _processes(holders: Mapping[str, Any]) -> TaskProcesses:
    processes = TaskProcesses()
    for name, process in holders["active"].items():
        each, partition = name.split("/")
        processes.add(AssignedTasks({each: {int(partition): 1}}, {}, {}), process)
    for kind in ("standby", "warmup"):
        for name, found in holders[kind].items():
            each, partition = name.split("/")
            tasks = {each: frozenset({int(partition)})}
            for process in found:
                held = {"standby": {}, "warmup": {}} | {kind: tasks}
                processes.add(AssignedTasks({}, **held), process)
    return processes
