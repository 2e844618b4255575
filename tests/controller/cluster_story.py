"""A random story of a cluster, told to our controller and, line by line, for Apache's to hear.

Brokers come, live, lose directories and go; topics come, grow and go; leaders change their ISRs,
people elect, reassign, configure and raise levels. Left out is what docs/DEVIATIONS.md says that
ours does otherwise, and what 4.3.1 does in the order of a hash table.
"""

from kraft_wire.metadata.features import ELR_VERSION
from kraft_wire.model import Uuid
from kraft_wire.wire.generated import alter_partition, assign_replicas_to_dirs, elect_leaders
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.controller.broker_cluster import directory
from tests.controller.story_of_brokers import Brokers

NOBODY = Uuid(b"x" * 16)
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_KEYS = {
    "unclean.leader.election.enable": ("true", "false"),
    "min.insync.replicas": ("1", "2", "3"),
    "retention.ms": ("5", " 7", "007"),
    "cleanup.policy": ("delete", "compact", " compact", "compact, delete", "compact,compact"),
}
BROKER_KEYS = {
    key: TOPIC_KEYS[key] for key in ("unclean.leader.election.enable", "min.insync.replicas")
}


class Story(Brokers):
    """The story of one seed."""

    def __init__(self, seed: int, steps: int) -> None:
        super().__init__(seed)
        while len(self.cluster.loader.image.topics_by_name) < 2:
            self.create()
        kinds = {
            self.register: 4,
            self.live: 14,
            self.alter: 12,
            self.elect: 4,
            self.reassign: 8,
            self.list_reassignments: 1,
            self.assign: 4,
            self.unregister: 1,
            self.create: 2,
            self.delete: 1,
            self.grow: 2,
            self.configure: 5,
            self.finalise: 1,
            self.pass_time: 4,
        }
        for step in self.random.choices(list(kinds), list(kinds.values()), k=steps):
            step()

    # -- partitions ------------------------------------------------------------------------------

    def alter(self) -> None:
        topic, partition = self._partition()
        leader = partition.leader if self._is_likely(0.95) else self._broker_id()
        isr = self._some(partition.replicas, 0.8)
        if leader not in isr and self._is_likely(0.9):
            isr.append(leader)
        self.random.shuffle(isr)
        asked = alter_partition.PartitionData(
            partition_index=partition.partition if self._is_likely(0.97) else 99,
            leader_epoch=partition.leader_epoch + self._mistake(),
            partition_epoch=partition.partition_epoch + self._mistake(),
            leader_recovery_state=self._one_of((partition.leader_recovery_state, 0, 1)),
        )
        version = self._one_of((2, 3))
        if version == 2:
            asked.new_isr = isr
        else:
            asked.new_isr_with_epochs = [
                alter_partition.BrokerState(
                    broker_id=each, broker_epoch=self._epoch(each) if self._is_likely(0.8) else -1
                )
                for each in isr
            ]
        topic_id = topic.topic_id if self._is_likely(0.97) else NOBODY
        topics = [alter_partition.TopicData(topic_id=topic_id, partitions=[asked])]
        request = alter_partition.AlterPartitionRequest(
            broker_id=leader, broker_epoch=self._epoch(leader), topics=topics
        )
        self._ask(request, version)

    def elect(self) -> None:
        asked = None
        if self._is_likely(0.7):
            topic, partition = self._partition()
            numbers = sorted({partition.partition, self.random.randrange(4)})
            asked = [elect_leaders.TopicPartitions(topic=topic.name, partitions=numbers)]
        kind = self._one_of((0, 0, 0, 1, 1, 3))
        request = elect_leaders.ElectLeadersRequest(election_type=kind, topic_partitions=asked)
        self._ask(request, self._one_of((1, 2)))

    def reassign(self) -> None:
        topic, partition = self._partition()
        replicas: list[int] | None = self.random.sample(range(2, 7), self.random.randint(1, 3))
        if self._is_likely(0.25):
            replicas = None
        elif self._is_likely(0.05):
            replicas = self._one_of(([], [2, 2]))
        number = partition.partition if self._is_likely(0.95) else 99
        asked = ReassignablePartition(partition_index=number, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic.name, partitions=[asked])],
            allow_replication_factor_change=self._is_likely(0.8),
        )
        self._ask(request)

    def list_reassignments(self) -> None:
        self._ask(ListPartitionReassignmentsRequest(topics=None))

    def assign(self) -> None:
        number = self._broker_id()
        topic, partition = self._partition()
        asked = [
            assign_replicas_to_dirs.PartitionData(partition_index=each)
            for each in sorted({partition.partition, self.random.randrange(4)})
        ]
        topic_id = topic.topic_id if self._is_likely(0.95) else NOBODY
        request = assign_replicas_to_dirs.AssignReplicasToDirsRequest(
            broker_id=number,
            broker_epoch=self._epoch(number),
            directories=[
                assign_replicas_to_dirs.DirectoryData(
                    id=directory(number, self.random.randrange(3)),
                    topics=[assign_replicas_to_dirs.TopicData(topic_id=topic_id, partitions=asked)],
                )
            ],
        )
        self._ask(request)

    # -- topics and settings ---------------------------------------------------------------------

    def create(self) -> None:
        """Make a topic: its id is ours to choose, so Apache's controller hears the records."""
        count = self.random.randint(1, 3)
        assignments = [
            CreatableReplicaAssignment(
                partition_index=number, broker_ids=self.random.sample(range(2, 6), count)
            )
            for number in range(self.random.randint(1, 3))
        ]
        topic = CreatableTopic(
            name=self._one_of("tuvw"),
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
        )
        self._do(CreateTopicsRequest(topics=[topic]))

    def delete(self) -> None:
        """Take a topic away: 4.3.1 fails later where it had a directory and nobody in its ISR."""
        topic, _ = self._partition()
        is_one_of_many = len(self.cluster.loader.image.topics_by_name) > 1
        if is_one_of_many and all(each.isr for each in topic.partitions.values()):
            self._do(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)]))

    def grow(self) -> None:
        topic, _ = self._partition()
        if len({len(each.replicas) for each in topic.partitions.values()}) > 1:
            return
        count, more = len(topic.partitions[0].replicas), self._one_of((1, 1, 2, 0, -1))
        wanted = min(5, max(1, count + self._mistake()))
        assignments = [
            CreatePartitionsAssignment(broker_ids=self.random.sample(range(2, 7), wanted))
            for _ in range(max(0, more))
        ]
        asked = CreatePartitionsTopic(
            name=topic.name, count=len(topic.partitions) + more, assignments=assignments
        )
        self._ask(CreatePartitionsRequest(topics=[asked]))

    def configure(self) -> None:
        topic, _ = self._partition()
        kind, name, keys = self._one_of(
            (
                (2, topic.name, TOPIC_KEYS),
                (2, topic.name, TOPIC_KEYS),
                (4, "", BROKER_KEYS),
                (4, "1", BROKER_KEYS),
            )
        )
        key = self._one_of(tuple(keys))
        operation = self._one_of((SET, SET, DELETE, APPEND, SUBTRACT))
        value = None if operation == DELETE else self._one_of(keys[key])
        change = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        self._ask(IncrementalAlterConfigsRequest(resources=[resource]))

    def finalise(self) -> None:
        level = self.random.randint(0, 1)
        update = FeatureUpdateKey(
            feature=ELR_VERSION,
            max_version_level=level,
            upgrade_type=self._one_of((1, 1, 1, 2, 3) if level else (1, 2, 3)),
        )
        self._ask(UpdateFeaturesRequest(feature_updates=[update]))
