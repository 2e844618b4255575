"""One row for each API key of the release: its owner, and the rights it needs.

Versions and listeners come from the schemas: they change with the release alone. A row without an
owner is an API that is not served. To serve it, set its owner and add a handler that has the
schema's base name.
The rights are those of release 4.3.1, broker (`KafkaApis`) and controller (`ControllerApis`), in
the order in which they are asked for.
"""

from typing import Final

from kraft_wire.apis.api import Api, ListenerType, Owner
from kraft_wire.apis.rights import AclOperation, Need, ResourceType, any_of, left_out, need
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.messages import MESSAGES

__all__ = ["ROWS"]

_BROKER, _CONTROLLER, _RAFT, _NODE = Owner.BROKER, Owner.CONTROLLER, Owner.RAFT, Owner.NODE

_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_CREATE, _DELETE, _ALTER = AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER
_DESCRIBE, _CLUSTER_ACTION = AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS

_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

_READ_GROUP, _READ_TOPIC = need(_READ, _GROUP), need(_READ, _TOPIC)
_DESCRIBE_GROUP, _DESCRIBE_TOPIC = need(_DESCRIBE, _GROUP), need(_DESCRIBE, _TOPIC)
_DELETE_GROUP = need(_DELETE, _GROUP)
_WRITE_TRANSACTIONAL_ID = need(_WRITE, _TRANSACTIONAL_ID)
_ACT = need(_CLUSTER_ACTION, _CLUSTER)
_ALTER_CLUSTER, _DESCRIBE_CLUSTER = need(_ALTER, _CLUSTER), need(_DESCRIBE, _CLUSTER)
_CLUSTER_OPERATIONS = left_out(need(_DESCRIBE, _CLUSTER, "operations in the answer"))
_ALTER_SETTINGS = (
    need(_ALTER_CONFIGS, _TOPIC, "a topic's settings"),
    need(_ALTER_CONFIGS, _GROUP, "a group's settings"),
    need(_ALTER_CONFIGS, _CLUSTER, "any other settings"),
)


def _row(
    name: str,
    owner: Owner | None,
    *needs: Need,
    on_controllers: Owner | None = None,
    controller_needs: tuple[Need, ...] | None = None,
    forwardable: bool = False,
    advertised_min: int | None = None,
) -> Api:
    """Add the schemas' facts about a request."""
    entry = MESSAGES[f"{name}Request"]
    assert entry.api_key >= 0, name
    lowest, highest = entry.min_version, entry.max_version - entry.latest_version_unstable
    return Api(
        entry.api_key,
        name,
        entry.module,
        (lowest, highest),
        tuple(ListenerType(each) for each in sorted(entry.listeners)),
        owner,
        on_controllers,
        forwardable,
        lowest if advertised_min is None else advertised_min,
        needs,
        controller_needs,
    )


ROWS: Final[tuple[Api, ...]] = (
    _row(
        "Produce",
        _BROKER,
        need(_WRITE, _TRANSACTIONAL_ID, "transactional batches"),
        need(_WRITE, _TOPIC),
        advertised_min=0,  # librdkafka up to 2.0 drops compression otherwise (KAFKA-18659)
    ),
    _row(
        "Fetch",
        _BROKER,
        need(_READ, _TOPIC, "a consumer"),
        need(
            _CLUSTER_ACTION,
            _CLUSTER,
            "a replica",
            refused=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
        on_controllers=_RAFT,
        controller_needs=(_ACT,),
    ),
    _row("ListOffsets", _BROKER, _DESCRIBE_TOPIC),
    _row(
        "Metadata",
        _BROKER,
        _DESCRIBE_TOPIC,
        any_of((_CREATE, _CLUSTER), (_CREATE, _TOPIC), when="topics to be created"),
        _CLUSTER_OPERATIONS,
    ),
    _row("OffsetCommit", _BROKER, _READ_GROUP, _READ_TOPIC),
    _row("OffsetFetch", _BROKER, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    _row(
        "FindCoordinator",
        _BROKER,
        need(_DESCRIBE, _GROUP, "a group's"),
        need(_DESCRIBE, _TRANSACTIONAL_ID, "a transactional id's"),
        need(_CLUSTER_ACTION, _CLUSTER, "a share partition's"),
    ),
    _row("JoinGroup", _BROKER, _READ_GROUP),
    _row("Heartbeat", _BROKER, _READ_GROUP),
    _row("LeaveGroup", _BROKER, _READ_GROUP),
    _row("SyncGroup", _BROKER, _READ_GROUP),
    _row("DescribeGroups", _BROKER, _DESCRIBE_GROUP),
    _row("ListGroups", _BROKER, left_out(any_of((_DESCRIBE, _CLUSTER), (_DESCRIBE, _GROUP)))),
    _row("SaslHandshake", _BROKER),
    _row("ApiVersions", _BROKER, on_controllers=_NODE),
    _row(
        "CreateTopics",
        _CONTROLLER,
        any_of((_CREATE, _CLUSTER), (_CREATE, _TOPIC)),
        need(_DESCRIBE_CONFIGS, _TOPIC, "settings in the answer"),
        forwardable=True,
    ),
    _row(
        "DeleteTopics",
        _CONTROLLER,
        any_of((_DELETE, _CLUSTER), (_DELETE, _TOPIC)),
        need(_DESCRIBE, _TOPIC, "its name or its absence in a refusal"),
        forwardable=True,
    ),
    _row("DeleteRecords", _BROKER, need(_DELETE, _TOPIC)),
    _row(
        "InitProducerId",
        _BROKER,
        need(_WRITE, _TRANSACTIONAL_ID, "a transactional id"),
        need(AclOperation.TWO_PHASE_COMMIT, _TRANSACTIONAL_ID, "two-phase commit"),
        any_of(
            (AclOperation.IDEMPOTENT_WRITE, _CLUSTER),
            (_WRITE, _TOPIC),
            when="no transactional id; any topic will do",
            refused=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
    ),
    _row(
        "OffsetForLeaderEpoch",
        _BROKER,
        any_of((_CLUSTER_ACTION, _CLUSTER), (_DESCRIBE, _TOPIC)),
    ),
    _row(
        "AddPartitionsToTxn",
        _BROKER,
        need(_WRITE, _TRANSACTIONAL_ID, "up to version 3"),
        need(_WRITE, _TOPIC, "up to version 3"),
        need(_CLUSTER_ACTION, _CLUSTER, "from version 4 on"),
    ),
    _row("AddOffsetsToTxn", _BROKER, _WRITE_TRANSACTIONAL_ID, _READ_GROUP),
    _row("EndTxn", _BROKER, _WRITE_TRANSACTIONAL_ID),
    _row("WriteTxnMarkers", _BROKER, any_of((_ALTER, _CLUSTER), (_CLUSTER_ACTION, _CLUSTER))),
    _row("TxnOffsetCommit", _BROKER, _WRITE_TRANSACTIONAL_ID, _READ_GROUP, _READ_TOPIC),
    _row("DescribeAcls", _BROKER, _DESCRIBE_CLUSTER),
    _row("CreateAcls", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row("DeleteAcls", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row(
        "DescribeConfigs",
        _BROKER,
        need(_DESCRIBE_CONFIGS, _TOPIC, "a topic's settings"),
        need(_DESCRIBE_CONFIGS, _GROUP, "a group's settings"),
        need(_DESCRIBE_CONFIGS, _CLUSTER, "any other settings"),
    ),
    _row("AlterConfigs", _CONTROLLER, *_ALTER_SETTINGS, forwardable=True),
    _row("AlterReplicaLogDirs", _BROKER, _ALTER_CLUSTER),
    _row("DescribeLogDirs", _BROKER, _DESCRIBE_CLUSTER),
    _row("SaslAuthenticate", _BROKER),
    _row("CreatePartitions", _CONTROLLER, need(_ALTER, _TOPIC), forwardable=True),
    _row(
        "CreateDelegationToken",
        _CONTROLLER,
        need(AclOperation.CREATE_TOKENS, ResourceType.USER, "another owner than who asks"),
        forwardable=True,
    ),
    _row("RenewDelegationToken", _CONTROLLER, forwardable=True),
    _row("ExpireDelegationToken", _CONTROLLER, forwardable=True),
    _row(
        "DescribeDelegationToken",
        _BROKER,
        left_out(
            any_of(
                (_DESCRIBE, ResourceType.DELEGATION_TOKEN),
                (AclOperation.DESCRIBE_TOKENS, ResourceType.USER),
                when="neither owner nor renewer",
            )
        ),
    ),
    _row("DeleteGroups", _BROKER, _DELETE_GROUP),
    _row("ElectLeaders", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row(
        "IncrementalAlterConfigs",
        _CONTROLLER,
        *_ALTER_SETTINGS,
        forwardable=True,
    ),
    _row("AlterPartitionReassignments", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row("ListPartitionReassignments", _CONTROLLER, _DESCRIBE_CLUSTER, forwardable=True),
    _row("OffsetDelete", _BROKER, _DELETE_GROUP, _READ_TOPIC),
    _row("DescribeClientQuotas", _BROKER, need(_DESCRIBE_CONFIGS, _CLUSTER)),
    _row("AlterClientQuotas", _CONTROLLER, need(_ALTER_CONFIGS, _CLUSTER), forwardable=True),
    _row("DescribeUserScramCredentials", _BROKER, _DESCRIBE_CLUSTER),
    _row("AlterUserScramCredentials", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row("Vote", _RAFT, _ACT),
    _row("BeginQuorumEpoch", _RAFT, _ACT),
    _row("EndQuorumEpoch", _RAFT, _ACT),
    _row("DescribeQuorum", _RAFT, _DESCRIBE_CLUSTER, forwardable=True),
    _row("AlterPartition", _CONTROLLER, _ACT),
    _row("UpdateFeatures", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row("Envelope", _NODE, _ACT),
    _row("FetchSnapshot", _RAFT, _ACT),
    _row(
        "DescribeCluster",
        _BROKER,
        _CLUSTER_OPERATIONS,
        on_controllers=_NODE,
        controller_needs=(_ALTER_CLUSTER,),
    ),
    _row("DescribeProducers", _BROKER, _READ_TOPIC),
    _row("BrokerRegistration", _CONTROLLER, _ACT),
    _row("BrokerHeartbeat", _CONTROLLER, _ACT),
    _row("UnregisterBroker", _CONTROLLER, _ALTER_CLUSTER, forwardable=True),
    _row(
        "DescribeTransactions",
        _BROKER,
        need(_DESCRIBE, _TRANSACTIONAL_ID),
        left_out(_DESCRIBE_TOPIC),
    ),
    _row("ListTransactions", _BROKER, left_out(need(_DESCRIBE, _TRANSACTIONAL_ID))),
    _row("AllocateProducerIds", _CONTROLLER, _ACT, forwardable=True),
    _row("ConsumerGroupHeartbeat", _BROKER, _READ_GROUP, _DESCRIBE_TOPIC),
    _row("ConsumerGroupDescribe", _BROKER, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    _row("ControllerRegistration", _CONTROLLER, _ACT),
    _row("GetTelemetrySubscriptions", None),
    _row("PushTelemetry", None),
    _row("AssignReplicasToDirs", _CONTROLLER, _ACT),
    _row("ListConfigResources", _BROKER, need(_DESCRIBE_CONFIGS, _CLUSTER)),
    _row("DescribeTopicPartitions", _BROKER, _DESCRIBE_TOPIC),
    _row("ShareGroupHeartbeat", _BROKER, _READ_GROUP, _DESCRIBE_TOPIC),
    _row("ShareGroupDescribe", _BROKER, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    _row("ShareFetch", _BROKER, _READ_GROUP, _READ_TOPIC),
    _row("ShareAcknowledge", _BROKER, _READ_GROUP, _READ_TOPIC),
    _row("AddRaftVoter", _RAFT, _ALTER_CLUSTER, forwardable=True),
    _row("RemoveRaftVoter", _RAFT, _ALTER_CLUSTER, forwardable=True),
    _row("UpdateRaftVoter", _RAFT, _ACT),
    _row("InitializeShareGroupState", _BROKER, _ACT),
    _row("ReadShareGroupState", _BROKER, _ACT),
    _row("WriteShareGroupState", _BROKER, _ACT),
    _row("DeleteShareGroupState", _BROKER, _ACT),
    _row("ReadShareGroupStateSummary", _BROKER, _ACT),
    _row(
        "StreamsGroupHeartbeat",
        _BROKER,
        _READ_GROUP,
        _DESCRIBE_TOPIC,
        left_out(
            any_of((_CREATE, _CLUSTER), (_CREATE, _TOPIC), when="internal topics to be created")
        ),
    ),
    _row("StreamsGroupDescribe", _BROKER, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    _row("DescribeShareGroupOffsets", _BROKER, _DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    _row("AlterShareGroupOffsets", _BROKER, _READ_GROUP, _READ_TOPIC),
    _row("DeleteShareGroupOffsets", _BROKER, _DELETE_GROUP, _READ_TOPIC),
)
"""In the order of the keys."""
