"""Requests of administrators that a controller must refuse, each with the error that Kafka gives.

None of them changes anything.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.clients.register_client import CLIENT_METRICS
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.message import Message

__all__ = ["mistakes"]

Mistake = tuple[Message, ErrorCode]

_SCRAM_SHA_256: Final = 1
_TOPIC: Final = 2
_LITERAL: Final = 3
_READ: Final = 3
_ALLOW: Final = 3
_BROKERS_TOO_MANY: Final = 9


def mistakes(name: str) -> tuple[Mistake, ...]:
    """Return all of them, about one name that nothing has."""
    grown = CreatePartitionsTopic(name=name, count=9, assignments=None)
    deletion = DeleteTopicState(name=name)
    return (
        *_topics(name),
        *_settings(name),
        *_credentials(name),
        (CreatePartitionsRequest(topics=[grown]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicsRequest(topics=[deletion]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )


def _topics(name: str) -> tuple[Mistake, ...]:
    """An invalid name, more replicas than brokers, and one topic twice."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    nameless = CreatableTopic(name=f"{name}/y", num_partitions=1, replication_factor=1)
    crowd = CreatableTopic(name=name, num_partitions=1, replication_factor=_BROKERS_TOO_MANY)
    return (
        (CreateTopicsRequest(topics=[nameless]), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreateTopicsRequest(topics=[crowd]), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopicsRequest(topics=[topic, topic]), ErrorCode.INVALID_REQUEST),
    )


def _settings(name: str) -> tuple[Mistake, ...]:
    """A value out of its range, an unknown setting, and an unknown quota."""
    short = AlterableConfig(name="interval.ms", config_operation=0, value="99")
    unknown = AlterableConfig(name="no.such.setting", config_operation=0, value="1000")
    found = []
    for configs in ([short], [unknown]):
        resource = AlterConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configs=configs
        )
        found.append(IncrementalAlterConfigsRequest(resources=[resource]))
    quota = EntryData(
        entity=[EntityData(entity_type="user", entity_name=name)],
        ops=[OpData(key="no_such_quota", value=1.0)],
    )
    requests: list[Message] = [*found, AlterClientQuotasRequest(entries=[quota])]
    return tuple((each, ErrorCode.INVALID_REQUEST) for each in requests)


def _credentials(name: str) -> tuple[Mistake, ...]:
    """A principal without a type, too few iterations, and one user twice."""
    acl = AclCreation(
        resource_type=_TOPIC,
        resource_name=name,
        resource_pattern_type=_LITERAL,
        principal="nobody",
        host="*",
        operation=_READ,
        permission_type=_ALLOW,
    )
    weak, right = (
        ScramCredentialUpsertion(
            name=name,
            mechanism=_SCRAM_SHA_256,
            iterations=iterations,
            salt=b"salt",
            salted_password=b"p" * 32,
        )
        for iterations in (4_095, 4_096)
    )
    return (
        (CreateAclsRequest(creations=[acl]), ErrorCode.INVALID_REQUEST),
        (
            AlterUserScramCredentialsRequest(upsertions=[weak]),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (
            AlterUserScramCredentialsRequest(upsertions=[right, right]),
            ErrorCode.DUPLICATE_RESOURCE,
        ),
    )
