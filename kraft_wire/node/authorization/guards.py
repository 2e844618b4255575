"""The step between decoding and handlers: each request's guard, and late answers.

A guard checks the rights of the table (`apis.rows`) for one kind of listener, and returns an answer
that refuses the request, or the part of it that may be served. It runs before its handler, so
authorization comes before existence. Every served API has a guard; one without rights in the table
has `whole.nothing`. Without an authorizer a node has no `Guards`, and requests go to their handlers
directly.

Requests of the node to itself are not checked. Partitions of a fetch are checked while the fetch is
read, because its session names them (`fetch_rights`).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.broker.context import CLOSE, RequestContext, Withheld
from kraft_wire.broker.dispatch import Handle, handler
from kraft_wire.broker.groups.consumer.switch import serves_consumer_groups
from kraft_wire.broker.groups.streams.switch import serves_streams_groups
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.metadata.authorizer.principal import host_text
from kraft_wire.metadata.authorizer.standard_authorizer import (
    AuthorizerNotReady,
    StandardAuthorizer,
)
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import ReportEvent
from kraft_wire.node.authorization import (
    configs,
    coordinators,
    groups,
    metadata,
    offset_fetch,
    produce,
    share_offsets,
    shares,
    streams,
    tokens,
    topic_changes,
    topic_pages,
    topics,
    transactions,
    whole,
)
from kraft_wire.node.authorization.asker import Asked, Asker, Passed, Verdict
from kraft_wire.node.authorization.audit import Audit, Who
from kraft_wire.node.authorization.configs import CLUSTER_STEP
from kraft_wire.node.requests.late_answers import LateAnswers
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["Guards"]

Guard = Callable[[Asked], Verdict]

_BY_NAME: Final[Mapping[str, Guard]] = {
    "AddOffsetsToTxn": whole.transaction,
    "AddPartitionsToTxn": transactions.add_partitions_to_txn,
    "AlterConfigs": configs.alter_configs,
    "AlterShareGroupOffsets": share_offsets.alter_share_group_offsets,
    "CreatePartitions": topic_changes.create_partitions,
    "CreateTopics": topic_changes.create_topics,
    "ConsumerGroupDescribe": groups.consumer_group_describe,
    "ConsumerGroupHeartbeat": groups.consumer_group_heartbeat,
    "CreateDelegationToken": tokens.create_delegation_token,
    "DeleteGroups": groups.delete_groups,
    "DeleteRecords": topics.delete_records,
    "DeleteShareGroupOffsets": share_offsets.delete_share_group_offsets,
    "DeleteTopics": topic_changes.delete_topics,
    "DescribeCluster": metadata.describe_cluster,
    "DescribeConfigs": configs.describe_configs,
    "DescribeDelegationToken": tokens.describe_delegation_token,
    "DescribeGroups": groups.describe_groups,
    "DescribeShareGroupOffsets": share_offsets.describe_share_group_offsets,
    "DescribeProducers": topics.describe_producers,
    "DescribeTopicPartitions": topic_pages.describe_topic_partitions,
    "DescribeTransactions": transactions.describe_transactions,
    "EndTxn": whole.transaction,
    "FindCoordinator": coordinators.find_coordinator,
    "Heartbeat": whole.group,
    "IncrementalAlterConfigs": configs.incremental_alter_configs,
    "InitProducerId": transactions.init_producer_id,
    "JoinGroup": whole.group,
    "LeaveGroup": whole.group,
    "ListGroups": groups.list_groups,
    "ListOffsets": topics.list_offsets,
    "ListTransactions": transactions.list_transactions,
    "Metadata": metadata.metadata,
    "OffsetCommit": groups.offset_commit,
    "OffsetDelete": groups.offset_delete,
    "OffsetFetch": offset_fetch.offset_fetch,
    "OffsetForLeaderEpoch": topics.offset_for_leader_epoch,
    "Produce": produce.produce,
    "ShareAcknowledge": shares.share_group,
    "ShareFetch": shares.share_group,
    "ShareGroupDescribe": groups.share_group_describe,
    "ShareGroupHeartbeat": groups.share_group_heartbeat,
    "StreamsGroupDescribe": streams.streams_group_describe,
    "StreamsGroupHeartbeat": streams.streams_group_heartbeat,
    "SyncGroup": groups.sync_group,
    "TxnOffsetCommit": transactions.txn_offset_commit,
}
"""The guards of requests that need more than one right on the cluster."""


_ABOUT_SHARE_GROUPS: Final = frozenset(
    (
        "AlterShareGroupOffsets",
        "DeleteShareGroupOffsets",
        "DescribeShareGroupOffsets",
        "ShareAcknowledge",
        "ShareFetch",
        "ShareGroupDescribe",
        "ShareGroupHeartbeat",
    )
)


def _is_switched_off(api: str, broker: "Broker") -> bool:
    """Whether a broker refuses every request of an API, as in Kafka before it looks at rights."""
    if api in _ABOUT_SHARE_GROUPS:
        return not serves_share_groups(broker.image)
    if api in ("ConsumerGroupDescribe", "ConsumerGroupHeartbeat"):
        return not serves_consumer_groups(broker.image, broker.settings)
    if api in ("StreamsGroupDescribe", "StreamsGroupHeartbeat"):
        return not serves_streams_groups(broker.image, broker.settings)
    return False


def _guard_of(api_key: int, listener: ListenerType) -> Guard:
    """Return the guard of an API; `whole.cluster` asserts that the table has only one right."""
    name = APIS[api_key].name
    if listener is ListenerType.CONTROLLER and name == "DescribeCluster":
        return metadata.describe_cluster_of_controllers
    if listener is ListenerType.BROKER and name == "Fetch":
        return lambda asked: Passed(asked.request)  # judged partition by partition
    if not APIS[api_key].needs_on(listener):
        return whole.nothing
    return _BY_NAME.get(name, whole.cluster)


class Guards(dict[int, Handle]):
    """The guarded handlers of the broker, and the checks of a controller's requests."""

    def __init__(self, authorizer: StandardAuthorizer, report: ReportEvent) -> None:
        self._authorizer = authorizer
        self._audit = Audit(authorizer, report)
        self._guards: dict[tuple[int, ListenerType], Guard] = {}
        self._hosts: dict[str, str] = {}
        self._report = report
        self._told_not_loaded = False
        self.tick = self._audit.tick
        late = LateAnswers()
        self.after, self.finished, self.forget = late.after, late.finished, late.forget

    def join(self, broker: "Broker") -> None:
        """Let a broker ask for rights that its requests' guards cannot see."""
        broker.rights = self

    def follow(self, delta: MetadataDelta) -> None:
        """Apply the delta to a committed image: decisions change, also for open connections."""
        if self._authorizer.is_loaded:
            self._authorizer.apply(delta)
        else:
            self._authorizer.load(delta.after)

    def __missing__(self, api_key: int) -> Handle:
        inner, name = handler(api_key), APIS[api_key].name

        def guarded(
            broker: "Broker", context: RequestContext, request: Message
        ) -> Message | Withheld:
            if _is_switched_off(name, broker):
                return inner(broker, context, request)
            verdict = self.judge(
                ListenerType.BROKER, context, request, broker.image, broker.settings.source
            )
            if not isinstance(verdict, Passed):
                return verdict
            return self.after(context, verdict, inner(broker, context, verdict.request))

        self[api_key] = guarded
        return guarded

    def judge(
        self,
        listener: ListenerType,
        context: RequestContext,
        request: Message,
        image: MetadataImage,
        settings: NodeSettings,
        not_loaded: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR,
    ) -> Verdict:
        """Return the refusal of a request, or the part of it that may be served.

        Before the entries are loaded, all but super users get `not_loaded` on a controller's
        listener, as in Kafka. A broker's listeners are closed until then.
        """
        key = request.API_KEY, listener
        guard = self._guards.get(key)
        if guard is None:
            guard = self._guards[key] = _guard_of(*key)
        needs = APIS[request.API_KEY].needs_on(listener)
        asker = self._asker(context, request.API_KEY)
        try:
            return guard(Asked(asker, context, request, needs, image, settings))
        except AuthorizerNotReady:
            self._tell_not_loaded(context, request)
            if listener is ListenerType.BROKER:
                return CLOSE
            return whole.refused(request, not_loaded, context.api_version)

    def _tell_not_loaded(self, context: RequestContext, request: Message) -> None:
        """Log the first request that came before the entries."""
        if not self._told_not_loaded:
            self._told_not_loaded = True
            self._report(
                "acls_not_loaded", client=context.client_host, api=APIS[request.API_KEY].name
            )

    def may_alter_brokers(self, context: RequestContext, api_key: int) -> bool:
        """Return whether a request may change the settings of brokers; it writes no audit line."""
        need = APIS[api_key].needs_on(ListenerType.BROKER)[CLUSTER_STEP]
        if not self._authorizer.is_loaded:
            return False
        return self._asker(context, api_key).meets(need, is_silent=True)

    def fetch_rights(
        self, context: RequestContext, *, is_follower: bool
    ) -> Callable[[str | None], bool]:
        """Return a function: whether a fetch may read a topic. Each topic is checked once.

        None means a topic that does not exist: a consumer gets that error, a follower must first
        have its right.
        """
        read, act = APIS[_FETCH].needs
        asker = self._asker(context, _FETCH)
        if not self._authorizer.is_loaded:
            return lambda _: False
        if is_follower:
            may_act = asker.meets(act)
            return lambda topic: may_act
        known: dict[str | None, bool] = {None: True}

        def may_read(topic: str | None) -> bool:
            found = known.get(topic)
            if found is None:
                assert topic is not None, "known from the start"
                found = known[topic] = asker.meets(read, topic)
            return found

        return may_read

    def topic_rights(self, context: RequestContext) -> Callable[[str], bool]:
        """Return a function: whether the principal may describe a topic; without audit lines."""
        _, describe = APIS[_CONSUMER_GROUP_HEARTBEAT].needs
        asker = self._asker(context, _CONSUMER_GROUP_HEARTBEAT)
        return lambda topic: asker.meets(describe, topic, is_silent=True)

    def creation_rights(self, context: RequestContext) -> Callable[[str], bool]:
        """Return a function: whether the principal may create an internal topic of its group.

        The right on the cluster is enough, and its denial writes no audit line.
        """
        create = APIS[_STREAMS_GROUP_HEARTBEAT].needs[-1]
        asker = self._asker(context, _STREAMS_GROUP_HEARTBEAT)
        return lambda topic: asker.meets(create, topic)

    def share_rights(self, context: RequestContext, api_key: int) -> Callable[[str], bool]:
        """Return a function: whether a share group's request may read a topic, checked once."""
        _, read = APIS[api_key].needs
        asker = self._asker(context, api_key)
        known: dict[str, bool] = {}

        def may_read(topic: str) -> bool:
            found = known.get(topic)
            if found is None:
                found = known[topic] = asker.meets(read, topic)
            return found

        return may_read

    def _asker(self, context: RequestContext, api_key: int) -> Asker:
        who = Who(context.principal, self._host(context.client_host), APIS[api_key].name)
        return Asker(self._authorizer, self._audit, who, context.now_ms)

    def _host(self, address: str) -> str:
        """Return an address as entries name it."""
        found = self._hosts.get(address)
        if found is None:
            if len(self._hosts) >= _HOSTS_MAX:
                self._hosts.clear()
            found = self._hosts[address] = _host_text(address.removeprefix("/"))
        return found


_FETCH: Final = key_of("Fetch")
_CONSUMER_GROUP_HEARTBEAT: Final = key_of("ConsumerGroupHeartbeat")
_STREAMS_GROUP_HEARTBEAT: Final = key_of("StreamsGroupHeartbeat")
_HOSTS_MAX: Final = 10_000


def _host_text(address: str) -> str:
    """Return the text of an address; other texts, as in a simulation, are returned unchanged."""
    try:
        return host_text(address)
    except ValueError:
        return address
