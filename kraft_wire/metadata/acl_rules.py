"""Access-control entries: the codes of their parts, and the matches of a filter (KIP-11, 290).

Numbers are those of Kafka's `ResourceType`, `PatternType`, `AclOperation` and `AclPermissionType`;
0 is unknown, 1 matches anything in a filter. Shared by the controller, which records entries, and
the broker, which describes them. Not here: whether an operation is allowed.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import AclImage

__all__ = [
    "ANY",
    "AUTHORIZER_KEY",
    "CLUSTER_NAME",
    "CLUSTER_RESOURCE",
    "MATCH",
    "OPERATIONS",
    "PATTERN_TYPES",
    "PERMISSION_TYPES",
    "RESOURCE_TYPES",
    "STANDARD_AUTHORIZER",
    "UNKNOWN",
    "AclFilter",
]

AUTHORIZER_KEY: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The authorizer with entries in the metadata log; no other one is supported."""

UNKNOWN, ANY = 0, 1
MATCH: Final = 2
_LITERAL: Final = 3
CLUSTER_RESOURCE: Final = ResourceType.CLUSTER.value
CLUSTER_NAME: Final = "kafka-cluster"
_WILDCARD: Final = "*"

RESOURCE_TYPES: Final[Mapping[int, str]] = {
    1: "ANY",
    **{each.value: each.name for each in ResourceType},
}
PATTERN_TYPES: Final[Mapping[int, str]] = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
OPERATIONS: Final[Mapping[int, str]] = {
    1: "ANY",
    2: "ALL",
    **{each.value: each.name for each in AclOperation},
}
PERMISSION_TYPES: Final[Mapping[int, str]] = {1: "ANY", 2: "DENY", 3: "ALLOW"}


@frozen
class AclFilter:
    """A filter for entries; null names and `ANY` match all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def resource_is_unknown(self) -> bool:
        """Whether the code of the resource's type or pattern is unknown."""
        return self.resource_type not in RESOURCE_TYPES or self.pattern_type not in PATTERN_TYPES

    @property
    def entry_is_unknown(self) -> bool:
        """Whether the code of the operation or permission is unknown."""
        return self.operation not in OPERATIONS or self.permission_type not in PERMISSION_TYPES

    @property
    def has_zero(self) -> bool:
        """Whether a code is 0, which is invalid in a request."""
        codes = (self.resource_type, self.pattern_type, self.operation, self.permission_type)
        return UNKNOWN in codes

    def matches(self, acl: AclImage) -> bool:
        """Return whether the filter matches an entry."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
            and self._names(acl)
        )

    def _names(self, acl: AclImage) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != MATCH or acl.pattern_type == _LITERAL:
            is_same = self.resource_name == acl.resource_name
            return is_same or (self.pattern_type == MATCH and acl.resource_name == _WILDCARD)
        return self.resource_name.startswith(acl.resource_name)
