"""Administrators: each changes metadata under its own names, and knows the right result.

One request at a time. Each answer is compared with the judge's twin of the committed metadata: a
change that succeeded is there, exactly, and one that was refused changed nothing. If it is unknown
whether a request was carried out, the administrator continues under new names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.sim.clients.admin_mistakes import mistakes
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.clients.partition_moves import MoveWatch, drawn_move
from kraft_wire.sim.clients.register_client import CLIENT_METRICS
from kraft_wire.sim.clients.stub_brokers import FIRST_STUB_BROKER
from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.judge.metadata_twin import Key, Value
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import newest_leader
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import CONTROLLER_PORT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.message import Message

__all__ = ["Administrator"]

_PLACE: Final = -1_200
_TIMEOUT_US: Final = 2_000_000
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_TOPIC: Final = 2
_LITERAL, _PREFIXED, _MATCH = 3, 4, 2
_SCRAM_SHA_256: Final = 1
_UNKNOWN: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
"""After these errors it is unknown whether the request was carried out."""
_OUTCOMES: Final = (
    "responses",
    "topics",
    "results",
    "filter_results",
    "entries",
    "replica_election_results",
)
_PARTS: Final = ("partitions", "partition_result")

State = dict[Key, Value]
"""The state under one administrator's names: the twin's keys, in a predictable form."""
Step = tuple[Message, dict[ErrorCode, State]]
"""A request, and by each allowed error the state afterwards."""


class Administrator:
    """One administrator with its own names."""

    def __init__(self, stage: Stage, traffic: Traffic, judge: Judge, number: int) -> None:
        self.stage = stage
        self.judge = judge
        self.number = number
        self.is_done = False
        self._link = ClientLink(stage, traffic, _PLACE - number)
        self._random = stream(stage.seed, "administrator", number)
        self._generation = 0
        self._values = 0
        self._state: State = {}
        self._moves = MoveWatch(stage, judge)

    def start(self) -> None:
        """Begin after a while."""
        self._later()

    @property
    def _prefix(self) -> str:
        """The present prefix of all its names."""
        return f"adm{self.number}-{self._generation}-"

    def _later(self) -> None:
        self.stage.scheduler.after(self._random.randrange(5_000, 120_000), self._go_on)

    def _go_on(self) -> None:
        if self.is_done or self._link.is_busy:
            return
        kinds: tuple[Callable[[], Step], ...] = (
            self._alter_config,
            self._alter_list,
            self._alter_acls,
            self._alter_scram,
            self._alter_quota,
            self._alter_topic,
            self._alter_topic,
            self._move_partition,
            self._make_mistake,
        )
        node_id = self._controller()
        if node_id is None:
            self._later()
            return
        request, outcomes = self._random.choice(kinds)()

        def answered(response: Message | None) -> None:
            self._answered(node_id, request, outcomes, response)
            self._later()

        self._link.ask(node_id, CONTROLLER_PORT, request, _TIMEOUT_US, answered)

    def _controller(self) -> int | None:
        """Return the active controller, sometimes another one; None without an active one."""
        if self._random.random() < 0.03:
            return self._random.choice(self.stage.setup.controllers)
        leader = newest_leader(self.stage.machines.values())
        if leader is None or leader.node is None or not leader.node.quorum.host.is_active:
            return None
        return leader.id

    def _answered(
        self,
        node_id: int,
        request: Message,
        outcomes: dict[ErrorCode, State],
        response: Message | None,
    ) -> None:
        """Compare the committed state with the answer."""
        error = None if response is None else _error_of(response)
        name = request.NAME.removesuffix("Request")
        self.stage.marks[f"{name} {'unanswered' if error is None else error.name}"] += 1
        if error is None or error in _UNKNOWN:
            self._generation += 1
            self._state = {}
            return
        outcomes = {ErrorCode.KAFKA_STORAGE_ERROR: self._state, **outcomes}  # a disk is full
        if error not in outcomes:
            raise Violation("S47 AnswerIsRight", node_id, name, error.name, request)
        self._moves.answered(node_id, request, error)
        self._state = outcomes[error]
        found = self._committed()
        if found != self._state:
            facts = (name, error.name, request, "committed", found, "instead of", self._state)
            raise Violation("S47 AnswerIsRight", node_id, *facts)

    def _committed(self) -> State:
        """Return the part of the committed state under its names that it can predict."""
        twin, prefix = self.judge.twin, self._prefix
        found: State = {}
        for key, value in twin.now.items():
            match key:
                case ("config", _, str(name), _) if name.startswith(prefix):
                    found[key] = value
                case ("quota", entity, _) if entity[0][1].startswith(prefix):
                    found[key] = value
                case ("scram", str(name), _) if name.startswith(prefix):
                    found[key] = value[3]
                case ("acl", _) if value[1].startswith(prefix):
                    found["acl", *value] = True
                case ("topic", str(name)) if name.startswith(prefix):
                    own = [k for k, _ in twin.of_kind("partition") if k[1] == value]
                    found[key] = len(own)
        return found

    # -- requests --------------------------------------------------------------------------------

    def _with(self, *changes: tuple[Key, Value]) -> State:
        after = dict(self._state)
        for key, value in changes:
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return after

    def _next_value(self) -> int:
        self._values += 1
        return 1_000 + self._values

    def _alter(
        self, kind: int, name: str, key: str, operation: int, value: str | None
    ) -> IncrementalAlterConfigsRequest:
        config = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        is_dry = self._random.random() < 0.15
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=is_dry)

    def _alter_config(self) -> Step:
        """Set or remove a setting, or only validate the change."""
        name, key = f"{self._prefix}m{self._random.randrange(2)}", "interval.ms"
        value = str(self._next_value()) if self._random.random() < 0.7 else None
        operation = _SET if value is not None else _DELETE
        request = self._alter(CLIENT_METRICS, name, key, operation, value)
        register = ("config", CLIENT_METRICS, name, key)
        after = self._state if request.validate_only else self._with((register, value))
        return request, {ErrorCode.NONE: after}

    def _alter_list(self) -> Step:
        """Put a value into a list, or take it out (KIP-339)."""
        name, key = f"{self._prefix}m{self._random.randrange(2)}", "metrics"
        register = ("config", CLIENT_METRICS, name, key)
        value = self._random.choice(("one.", "two.", "three."))
        operation = self._random.choice((_SET, _APPEND, _SUBTRACT))
        before = str(self._state.get(register, ""))
        members = before.split(",") if before else []
        if operation == _SET:
            members = [value]
        elif operation == _APPEND and value not in members:
            members.append(value)
        elif operation == _SUBTRACT and value in members:
            members.remove(value)
        request = self._alter(CLIENT_METRICS, name, key, operation, value)
        joined = ",".join(members)
        is_empty = register not in self._state and not joined and operation != _SUBTRACT
        after = self._with((register, None if is_empty else joined))
        return request, {ErrorCode.NONE: self._state if request.validate_only else after}

    def _alter_acls(self) -> Step:
        """Create an entry, or delete those that a filter matches."""
        name = f"{self._prefix}t{self._random.randrange(3)}"
        pattern = self._random.choice((_LITERAL, _PREFIXED))
        if self._random.random() < 0.6:
            creation = AclCreation(
                resource_type=_TOPIC,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=f"User:u{self._random.randrange(2)}",
                host="*",
                operation=self._random.choice((3, 4)),
                permission_type=3,
            )
            content = (_TOPIC, name, pattern, creation.principal, "*", creation.operation, 3)
            after = self._with((("acl", *content), True))
            return CreateAclsRequest(creations=[creation]), {ErrorCode.NONE: after}
        wanted = self._random.choice((1, pattern, _MATCH))
        asked = DeleteAclsFilter(
            resource_type_filter=_TOPIC,
            resource_name_filter=name,
            pattern_type_filter=wanted,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        matched = [key for key in self._state if key[0] == "acl" and _matches(key, name, wanted)]
        after = self._with(*((key, None) for key in matched))
        return DeleteAclsRequest(filters=[asked]), {ErrorCode.NONE: after}

    def _alter_scram(self) -> Step:
        """Set a user's credential, or take it away (KIP-554)."""
        name = f"{self._prefix}u{self._random.randrange(2)}"
        key = ("scram", name, _SCRAM_SHA_256)
        if self._random.random() < 0.4:
            deletion = ScramCredentialDeletion(name=name, mechanism=_SCRAM_SHA_256)
            request = AlterUserScramCredentialsRequest(deletions=[deletion])
            if key not in self._state:
                return request, {ErrorCode.RESOURCE_NOT_FOUND: self._state}
            return request, {ErrorCode.NONE: self._with((key, None))}
        iterations = 4_096 + self._next_value()
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=_SCRAM_SHA_256,
            iterations=iterations,
            salt=b"salt",
            salted_password=b"p" * 32,
        )
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
        return request, {ErrorCode.NONE: self._with((key, iterations))}

    def _alter_quota(self) -> Step:
        """Set a quota of a user, or take it away."""
        user, key = f"{self._prefix}q{self._random.randrange(2)}", "consumer_byte_rate"
        kind = self._random.choice(("user", "client-id"))
        is_removal = self._random.random() < 0.4
        value = float(self._next_value())
        entry = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=user)],
            ops=[OpData(key=key, value=value, remove=is_removal)],
        )
        is_dry = self._random.random() < 0.15
        request = AlterClientQuotasRequest(entries=[entry], validate_only=is_dry)
        register = ("quota", ((kind, user),), key)
        after = self._with((register, None if is_removal else value))
        return request, {ErrorCode.NONE: self._state if is_dry else after}

    # -- topics ----------------------------------------------------------------------------------

    def _alter_topic(self) -> Step:
        """Create a topic, add partitions to it, set or delete it."""
        name = f"{self._prefix}t{self._random.randrange(2)}"
        key = ("topic", name)
        has = self._state.get(key)
        draw = self._random.random()
        if has is None or draw < 0.1:
            return self._create_topic(name, key, has is not None)
        if draw < 0.3:
            setting = ("config", _TOPIC, name, "retention.ms")
            gone = [(key, None), *((each, None) for each in self._state if each == setting)]
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1_000)
            return request, {ErrorCode.NONE: self._with(*gone)}
        if draw < 0.6:
            value = str(self._next_value())
            altered = self._alter(_TOPIC, name, "retention.ms", _SET, value)
            after = self._with((("config", _TOPIC, name, "retention.ms"), value))
            return altered, {ErrorCode.NONE: self._state if altered.validate_only else after}
        count = int(has) + self._random.randrange(2)
        is_dry = self._random.random() < 0.15
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        grown = CreatePartitionsRequest(topics=[topic], timeout_ms=1_000, validate_only=is_dry)
        if count == has:
            return grown, {ErrorCode.INVALID_PARTITIONS: self._state}
        outcomes = {ErrorCode.INVALID_REPLICATION_FACTOR: self._state}
        return grown, {
            **outcomes,
            ErrorCode.NONE: self._state if is_dry else self._with((key, count)),
        }

    def _create_topic(self, name: str, key: Key, is_there: bool) -> Step:
        count, factor = self._random.randrange(1, 3), self._random.randrange(1, 4)
        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=factor)
        if self._random.random() < 0.3 and len(self._brokers) >= factor:
            topic.num_partitions = topic.replication_factor = -1
            topic.assignments = [
                CreatableReplicaAssignment(
                    partition_index=number, broker_ids=self._random.sample(self._brokers, factor)
                )
                for number in range(count)
            ]
        is_dry = self._random.random() < 0.1
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1_000, validate_only=is_dry)
        if is_there:
            return request, {ErrorCode.TOPIC_ALREADY_EXISTS: self._state}
        return request, {
            ErrorCode.NONE: self._state if is_dry else self._with((key, count)),
            ErrorCode.INVALID_REPLICATION_FACTOR: self._state,
            **({ErrorCode.INVALID_REPLICA_ASSIGNMENT: self._state} if topic.assignments else {}),
        }

    def _move_partition(self) -> Step:
        """Elect the preferred leader of a partition, or give it other replicas, or stop that."""
        topics = [key[1] for key in self._state if key[0] == "topic"]
        name = self._random.choice(topics) if topics else f"{self._prefix}t0"
        request, allowed = drawn_move(self._random, name, self._brokers, is_there=bool(topics))
        self._moves.asked(request)
        return request, dict.fromkeys(allowed, self._state)

    @property
    def _brokers(self) -> range:
        return range(FIRST_STUB_BROKER, FIRST_STUB_BROKER + self.stage.setup.paper_brokers)

    def _make_mistake(self) -> Step:
        """Send a request that must be refused with Kafka's error."""
        request, error = self._random.choice(mistakes(f"{self._prefix}x"))
        return request, {error: self._state}


def _matches(key: Key, name: str, wanted: int) -> bool:
    """Return whether an entry matches a filter; `wanted` is its pattern type."""
    _, _, resource, pattern, *_ = key
    if wanted == _MATCH:
        return resource == name if pattern == _LITERAL else name.startswith(resource)
    return resource == name and wanted in (1, pattern)


def _error_of(response: Message) -> ErrorCode:
    """Return the only error of an answer, of its top or of its only item."""
    code = getattr(response, "error_code", 0)
    for name in _OUTCOMES:
        for item in getattr(response, name, [])[:1]:
            code = code or getattr(item, "error_code", 0)
            for part in _PARTS:
                inner: list[Any] = getattr(item, part, None) or []
                code = code or (getattr(inner[0], "error_code", 0) if inner else 0)
    return ErrorCode(code)
