"""All followed partitions: one fetcher for each leader, and the leader of each partition.

The broker starts and stops following; the node's links ask each fetcher for requests. A fetcher
stays while its leader is registered, idle or not.
"""

from collections.abc import Callable, Container

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.fetch_session_handler import PartitionKey
from kraft_wire.broker.replication.fetcher import Fetcher
from kraft_wire.broker.replication.following import FollowedPartition, FollowerEnvironment
from kraft_wire.broker.replication.throttle import ReplicationThrottle
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import TopicPartition

__all__ = ["ReplicaFetchers"]


class ReplicaFetchers:
    """The fetchers of one broker."""

    def __init__(
        self,
        replica_id: int,
        settings: Callable[[], BrokerSettings],
        env: FollowerEnvironment,
        order_flush: Callable[[Partition], None],
    ) -> None:
        """`order_flush` has a partition's log brought to the disk, some time soon."""
        self.by_leader: dict[int, Fetcher] = {}
        self.throttle: Callable[[], ReplicationThrottle | None] = lambda: None
        """Returns the throttle of this broker as a follower (KIP-73)."""
        self._replica_id = replica_id
        self._settings = settings
        self._env = env
        self._order_flush = order_flush
        self._followed: dict[TopicPartition, tuple[int, PartitionKey]] = {}
        """Leader and key of each partition that is followed."""
        self._is_stopped = False

    def follow(self, partition: Partition, leader_id: int, now_ms: int) -> None:
        """Follow a partition under its present leader epoch, which another one would replace."""
        if self._is_stopped:
            return
        name = partition.topic_partition
        known = self._followed.get(name)
        if known is not None:
            before = self.by_leader[known[0]].followed.get(known[1])
            is_same = before is not None and before.partition is partition
            if is_same and known[0] == leader_id:
                assert before is not None, name
                if before.leader_epoch == partition.leader_epoch:
                    return
            self.forget(partition)
        fetcher = self.by_leader.get(leader_id)
        if fetcher is None:
            fetcher = self.by_leader[leader_id] = Fetcher(
                leader_id, self._replica_id, self._settings, self._env.report, self._order_flush
            )
            fetcher.throttle = self.throttle
        followed = FollowedPartition(partition, self._env)
        self._followed[name] = (leader_id, followed.key)
        fetcher.follow(followed, now_ms)

    def forget(self, partition: Partition) -> None:
        """Stop following a partition, if it was followed."""
        known = self._followed.pop(partition.topic_partition, None)
        if known is not None:
            leader_id, key = known
            self.by_leader[leader_id].forget(key)

    def retain(self, leaders: Container[int]) -> None:
        """Drop the idle fetchers of brokers that are not registered any more."""
        for leader_id, fetcher in list(self.by_leader.items()):
            if leader_id not in leaders and not fetcher.followed:
                del self.by_leader[leader_id]

    def stop(self) -> None:
        """Follow nothing any more."""
        self._is_stopped = True
        self._followed = {}
        self.by_leader = {}
