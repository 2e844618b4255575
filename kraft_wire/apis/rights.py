"""Rights that an authorizer checks: operations on resources, with Kafka's codes (KIP-11, KIP-290).

Codes are those of Kafka's `AclOperation` and `ResourceType`. Nothing here decides.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["AclOperation", "Need", "ResourceType", "Right", "any_of", "left_out", "need"]


class AclOperation(IntEnum):
    """An operation of a principal; 1 (ANY) and 2 (ALL) only appear in filters and entries."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """The type of resource; 1 (ANY) only appears in filters."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Right(NamedTuple):
    """One operation on one kind of resource; the request names which resource."""

    operation: AclOperation
    resource: ResourceType

    def __str__(self) -> str:
        """Return the right as `READ TOPIC`."""
        return f"{self.operation.name} {self.resource.name}"


class Need(NamedTuple):
    """One step of a request's authorization: any one of the rights is enough."""

    rights: tuple[Right, ...]
    """In the order in which Kafka asks for them."""
    refused: ErrorCode | None
    """The error without these rights; None: the answer omits what they protect."""
    when: str = ""
    """The circumstances in which this step is taken; empty: always."""

    @property
    def error(self) -> ErrorCode:
        """The message of a refusal; only for needs that refuse."""
        assert self.refused is not None, self
        return self.refused

    def __str__(self) -> str:
        """Return the need as `CREATE CLUSTER or CREATE TOPIC (when topics are created)`."""
        words = " or ".join(map(str, self.rights))
        return f"{words} ({self.when})" if self.when else words


_REFUSED: Final[Mapping[ResourceType, ErrorCode]] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def need(
    operation: AclOperation,
    resource: ResourceType,
    when: str = "",
    *,
    refused: ErrorCode | None = None,
) -> Need:
    """Return the need of a single right; the error is that of its resource if none is named."""
    return Need((Right(operation, resource),), refused or _REFUSED[resource], when)


def any_of(
    *rights: tuple[AclOperation, ResourceType], when: str = "", refused: ErrorCode | None = None
) -> Need:
    """Return the need of one among several rights; the error is that of the last resource."""
    assert len(rights) > 1, rights
    return Need(tuple(Right(*each) for each in rights), refused or _REFUSED[rights[-1][1]], when)


def left_out(which: Need) -> Need:
    """Return a need that hides part of the answer instead of refusing the request."""
    return which._replace(refused=None)
