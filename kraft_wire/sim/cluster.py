"""The brokers of a world: the truth and judge of their partitions, and their clients.

The operator creates the topics of the plan; producers, consumers and the members of a group use
them. At the end everything must have settled: every replica in sync, every record read, the group
complete, its offsets as they were committed.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.metadata.image import GROUP_RESOURCE
from kraft_wire.sim.clients.askers import OffsetQueryClient
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.careless_producers import CarelessProducer
from kraft_wire.sim.clients.consumer_members import ConsumerMember
from kraft_wire.sim.clients.consumers import Consumer
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.describing_tools import DescribingTool
from kraft_wire.sim.clients.epoch_member import EpochMember
from kraft_wire.sim.clients.keyed_clients import KeyedProducer, UpkeepConsumer
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.clients.members import GroupMember
from kraft_wire.sim.clients.offset_tools import OffsetTool
from kraft_wire.sim.clients.producers import Producer
from kraft_wire.sim.clients.share_members import SHARE_GROUP, ShareMember
from kraft_wire.sim.clients.share_offset_tools import ShareOffsetTool
from kraft_wire.sim.clients.stable_consumers import StableConsumer
from kraft_wire.sim.clients.stale_members import StaleMember
from kraft_wire.sim.clients.streams_members import StreamsMember
from kraft_wire.sim.clients.tool import Tool
from kraft_wire.sim.clients.transaction_tools import TransactionTool
from kraft_wire.sim.clients.transactors import AgedTransactor, Transactor
from kraft_wire.sim.judge.data_judge import DataJudge
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.share_history import ShareHistory
from kraft_wire.sim.judge.transactions.history import TransactionHistory
from kraft_wire.sim.machine_state import MachineState, running
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import BROKER_PORT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.sim.upkeep_topics import is_compacted, topic_settings
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.message import Message

__all__ = ["Cluster"]

_LOOK_EVERY_US: Final = 300_000
_ADMIN_TIMEOUT_US: Final = 3_000_000
_RESET: Final = "share.auto.offset.reset"
_EARLIEST: Final = "earliest"
_PRODUCER_KINDS: Final = ((-1, True), (-1, False), (-1, True), (1, False))
"""acks, and whether it is idempotent; in turn."""
_UPKEEP_CONSUMERS_MAX: Final = 2
_GROUP_RESTS_US: Final = 2_000_000
"""More than the session of a member lasts."""


class Cluster:
    """Everything that only a world with brokers has."""

    def __init__(self, stage: Stage, traffic: Traffic, judge: DataJudge) -> None:
        self.stage = stage
        self.judge = judge
        self.context = ClientContext(stage, traffic, judge)
        self.truth = self.context.truth
        self.history = self.context.history
        self.random = stream(stage.seed, "cluster")
        self.operator = ClientLink(stage, traffic, -1_001)
        setup, context = stage.setup.data, self.context
        self.topics = [f"t{number}" for number in range(setup.topics)]
        self.is_over = False
        self.producers: list[Producer] = []
        for at in range(setup.producers):
            acks, is_idempotent = _PRODUCER_KINDS[at % len(_PRODUCER_KINDS)]
            topic = self.topics[at % len(self.topics)]
            self.producers.append(
                Producer(context, at + 1, topic, acks=acks, is_idempotent=is_idempotent)
            )
        self.consumers = [
            Consumer(context, 20 + at, self.topics[at % len(self.topics)])
            for at in range(setup.consumers)
        ]
        self.members = [
            GroupMember(context, 40 + at, self.topics[0]) for at in range(setup.members)
        ]
        self.upkeep_topics = list(setup.upkeep)
        for at, topic in enumerate(self.upkeep_topics):
            acks, is_idempotent = _PRODUCER_KINDS[(at + stage.seed) % len(_PRODUCER_KINDS)]
            self.producers.append(
                KeyedProducer(context, 70 + at, topic, acks=acks, is_idempotent=is_idempotent)
            )
            if at < _UPKEEP_CONSUMERS_MAX:
                self.consumers.append(UpkeepConsumer(context, 80 + at, topic))
        asked_for = [*self.upkeep_topics, self.topics[0]]
        self.askers = [
            OffsetQueryClient(context, 90 + at, asked_for[at % len(asked_for)])
            for at in range(setup.askers)
        ]
        compacted = [each for each in self.upkeep_topics if is_compacted(each)]
        self.careless = [
            CarelessProducer(context, 96 + at, topic)
            for at, topic in enumerate(compacted[: setup.careless])
        ]
        stale_members = setup.stale_members if self.members else 0
        self.stale_members = [
            StaleMember(context, 98 + at, self.members) for at in range(stale_members)
        ]
        self.transactors: list[Transactor] = []
        self.transactions: TransactionHistory | None = None
        if judge.transactions is not None:
            self.transactions = TransactionHistory(judge.transactions)
            self._add_transactors(self.transactions)
        self._add_group_members()
        self.tools: list[Tool] = []
        if setup.tools:
            self._add_tools(setup.tools)
        self.reader = GroupMember(context, 60, self.topics[0])
        self.reader.is_last = True
        self._generations: list[int] = []
        self._generations_since_us = 0

    def _add_transactors(self, history: TransactionHistory) -> None:
        """Make the transactional producers, every second of them a loop, and their readers."""
        setup, context = self.stage.setup.data, self.context
        for at in range(setup.transactors):
            topics = (self.topics[0], self.topics[-1])
            for twin in range(2 if at < setup.twins else 1):
                number = 110 + 10 * twin + at
                name = f"transactor-{at}"
                client = Transactor(context, history, number, topics, name, is_looping=at % 2 == 0)
                self.transactors.append(client)
        for at, topic in enumerate(filter(is_compacted, self.upkeep_topics)):
            client = Transactor(
                context,
                history,
                114 + at,
                (topic, topic),
                f"keyed-{at}",
                is_looping=False,
                keys=setup.keys,
            )
            self.transactors.append(client)
        self.transactors.append(AgedTransactor(context, history, 119, self.topics[0]))
        for at in range(setup.stable_readers):
            topic = self.topics[at % len(self.topics)]
            self.consumers.append(StableConsumer(context, history, 130 + at, topic))

    def _add_group_members(self) -> None:
        """Make the members of the consumer group, of the streams group, and of the share group.

        The share group begins at the start of each log.
        """
        context, setup = self.context, self.stage.setup.data
        topic, groups = self.topics[0], self.judge.groups
        self.epoch_members: list[EpochMember] = []
        if groups is not None:
            statics = setup.static_members
            self.epoch_members += [
                ConsumerMember(context, groups, 140 + at, topic, is_static=at < statics)
                for at in range(setup.consumer_members)
            ]
            self.epoch_members += [
                StreamsMember(context, groups, 160 + at, topic)
                for at in range(setup.streams_members)
            ]
        self.shares: ShareHistory | None = None
        self.share_members: list[ShareMember] = []
        self._has_reset = False
        if setup.share_members:
            shares = ShareHistory(self.stage, self.judge.looked, setup.delivery_limit)
            self.shares = shares
            self.share_members = [
                ShareMember(context, shares, 150 + at, topic, self._is_reset_known)
                for at in range(setup.share_members)
            ]

    def _add_tools(self, count: int) -> None:
        """Make what operators' tools ask, of the group coordinator and of that of transactions."""
        context, topic, setup = self.context, self.topics[0], self.stage.setup.data
        self.tools += [OffsetTool(context, 170 + at, topic) for at in range(count)]
        if setup.share_members:
            self.tools.append(ShareOffsetTool(context, 180, topic))
        self.tools.append(DescribingTool(context, 181, topic))
        if self.judge.transactions is not None:
            self.tools.append(TransactionTool(context, self.judge.transactions, 182, topic))

    def _is_reset_known(self) -> bool:
        """Whether every broker knows that the share group reads its topic from the start."""
        if not self._has_reset:
            brokers = [
                each for each in running(self.stage.machines.values()) if each.is_broker_only
            ]
            nodes = [each.node for each in brokers if each.node is not None]
            images = [node.broker.image for node in nodes]
            self._has_reset = bool(images) and all(
                image.config(GROUP_RESOURCE, SHARE_GROUP).get(_RESET) == _EARLIEST
                for image in images
            )
        return self._has_reset

    @property
    def clients(self) -> list[BrokerClient]:
        """All clients of brokers but the last reader."""
        groups: list[BrokerClient] = [*self.members, *self.stale_members]
        groups += [*self.epoch_members, *self.share_members]
        others = [*self.askers, *self.careless, *self.transactors, *self.tools]
        return [*self.producers, *self.consumers, *groups, *others]

    def start(self) -> None:
        """Start the operator and all clients."""
        self._keep_topics()
        for client in self.clients:
            client.start()

    # -- the operator ----------------------------------------------------------------------------

    def _keep_topics(self) -> None:
        """Create a topic that is wanted and not there, repeatedly."""
        missing = self._missing_topics()
        if missing and not self.operator.is_busy:
            self.order(self.creation(missing[0]))
        elif self.share_members and not self._is_reset_known() and not self.operator.is_busy:
            self.order(_reset_to_earliest())
        if not self.is_over:
            self.stage.scheduler.after(_LOOK_EVERY_US, self._keep_topics)

    def _missing_topics(self) -> list[str]:
        wanted = (*self.topics, *self.upkeep_topics)
        return [name for name in wanted if name not in self.truth.topic_ids]

    def creation(self, name: str) -> CreateTopicsRequest:
        """Return the request that creates a topic as planned."""
        setup = self.stage.setup.data
        configs: dict[str, object] = {"min.insync.replicas": setup.min_isr}
        if name in self.upkeep_topics:
            configs = topic_settings(name, setup)
        elif self.upkeep_topics:
            configs["retention.ms"] = -1  # its records have the times of another age
        topic = CreatableTopic(
            name=name,
            num_partitions=1 if name in self.upkeep_topics else setup.partitions,
            replication_factor=setup.replicas,
            configs=[CreatableTopicConfig(name=k, value=str(v)) for k, v in configs.items()],
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=2_000)

    def order(self, request: Message) -> None:
        """Ask any broker that runs, as the tools do."""
        brokers = [each.id for each in running(self.stage.machines.values()) if each.is_broker_only]
        node_id = self.random.choice(brokers or list(self.stage.setup.brokers))

        def answered(response: Message | None) -> None:
            name = request.NAME.removesuffix("Request")
            self.stage.marks[f"{name} {'unanswered' if response is None else 'answered'}"] += 1

        self.operator.ask(node_id, BROKER_PORT, request, _ADMIN_TIMEOUT_US, answered)

    # -- the end ---------------------------------------------------------------------------------

    def rest(self) -> None:
        """Write nothing new from here on."""
        for producer in self.producers:
            producer.is_done = True
        for transactor in self.transactors:
            transactor.is_done = True
        for consumer in self.consumers:
            consumer.catch_up()
        for tool in self.tools:
            tool.is_done = True
        for member in self.members:
            member.is_resting = True
        for client in self.epoch_members:
            client.rest()
        for sharer in self.share_members:
            sharer.rest()

    def why_unsettled(self) -> str | None:
        """Return what has not settled, None if all has."""
        why = self.why_not_replicated()
        if why is not None:
            return why
        missing = self._missing_topics()
        if missing:
            return f"topics {missing} are not there"
        writers: list[Producer | Transactor] = [*self.producers, *self.transactors]
        for writer in writers:
            if not writer.is_over:
                return f"producer {writer.number} waits"
        transactions = self.judge.transactions
        if transactions is not None and (why := transactions.why_open()) is not None:
            return why
        return self._why_readers_wait()

    def why_not_replicated(self) -> str | None:
        """Return a partition of which not every replica has everything, None without one."""
        for truth in self.truth.existing():
            reason = self._why_not_replicated(truth)
            if reason is not None:
                return f"{truth.name}: {reason}"
        return None

    def _why_readers_wait(self) -> str | None:
        for consumer in self.consumers:
            if not consumer.has_read_all:
                return f"consumer {consumer.number} has not read everything"
        generations = sorted({member.generation for member in self.members})
        if len(generations) > 1 or -1 in generations:
            return f"members are in generations {generations}"
        if self.context.settled_us is not None:
            return None
        if self.shares is not None:
            why = self.shares.why_undelivered(self.truth.of_topic(self.topics[0]))
            if why is not None:
                return why
        return self._why_group_is_not_shared()

    def _why_group_is_not_shared(self) -> str | None:
        """Return why a group is not settled: one epoch, and each partition owned by a member."""
        wanted = {(each.topic_id, each.number) for each in self.truth.of_topic(self.topics[0])}
        for kind in dict.fromkeys(member.kind for member in self.epoch_members):
            members = [member for member in self.epoch_members if member.kind == kind]
            epochs = sorted({member.epoch for member in members})
            if len(epochs) > 1 or 0 in epochs:
                return f"{kind} members are in epochs {epochs}"
            owned = {place for member in members for place in member.owned}
            if owned != wanted:
                return f"{kind} members own {owned} of {wanted}"
        return None

    def why_group_moves(self) -> str | None:
        """Return why the group has not settled: the generation of a member has changed recently."""
        generations, now_us = [member.generation for member in self.members], self.stage.now_us
        if generations != self._generations:
            self._generations, self._generations_since_us = generations, now_us
        if self.members and now_us - self._generations_since_us < _GROUP_RESTS_US:
            return f"generations {generations} since {self._generations_since_us}"
        return None

    def _why_not_replicated(self, truth: PartitionTruth) -> str | None:
        if truth.is_moving or set(truth.isr) != set(truth.replicas) or truth.leader < 0:
            return f"ISR {truth.isr} of {truth.replicas}, leader {truth.leader}"
        for node_id in truth.replicas:
            node = self.stage.machines[node_id].node
            if node is None:
                return f"{node_id} is down"
            partition = node.broker.partitions.get((truth.topic, truth.number))
            if partition is None or partition.topic_id != truth.topic_id or partition.offline:
                return f"{node_id} does not serve it"
            ends = (partition.log.log_end_offset, partition.log.high_watermark)
            if ends != (truth.end, truth.end):
                return f"{node_id} has {ends} of {truth.end}"
        return None

    def is_settled(self) -> bool:
        """Whether everything has come to rest."""
        return self.why_unsettled() is None

    def is_quiet(self) -> bool:
        """Whether no client waits for an answer."""
        return not any(client.is_busy for client in (*self.clients, self.reader))

    def read_offsets(self) -> None:
        """Have a client read the committed offsets, at the very end."""
        self.context.settled_us = self.stage.now_us
        for member in (*self.members, *self.epoch_members, *self.share_members):
            member.is_done = True
        self.reader.start()

    def finish(self) -> None:
        """Stop all clients."""
        self.is_over = True
        for client in (*self.clients, self.reader):
            client.is_done = True

    def offline(self, machine: MachineState) -> bool:
        """Return whether a broker has lost a directory to a disk error, until it restarts."""
        node = machine.node
        if node is None or not machine.is_broker_only:
            return False
        return any(each.is_offline for each in node.broker.logs.usage())


def _reset_to_earliest() -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=_RESET, config_operation=0, value=_EARLIEST)
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=SHARE_GROUP, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])
