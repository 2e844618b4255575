"""`StandardAuthorizer`: whether a principal may access a resource (KIP-11, 290, 801, 679).

Rules, in this order: a super user may do everything; a matching DENY entry refuses; a matching
ALLOW entry permits; if no entry covers the resource, `allow.everyone.if.no.acl.found` decides.
Equal to the class of that name in Apache Kafka 4.3.1, except that 4.3.1 fails for names that sort
before `*` and for users named `*`, which are ordinary texts here.

It is part of the metadata, below broker and controller, because both use the same entries. The node
calls it before its handlers run (`node.authorization`). It has no clock and no log: its caller
writes the audit line.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.metadata.authorizer.operation_bits import (
    OPERATIONS_OF,
    allowing,
    denying,
    entry_bit,
    exactly_allowing,
    matched,
)
from kraft_wire.metadata.authorizer.principal import entries_name
from kraft_wire.metadata.authorizer.resource_acls import WILDCARD, Pattern, ResourceAcls
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import AclImage, MetadataImage
from kraft_wire.model import Principal

__all__ = ["AuthorizerNotReady", "StandardAuthorizer"]

_LITERAL = 3
_HARDCODED_NAME = "hardcode"
"""The name that Kafka checks before it searches for another permitted one."""


class AuthorizerNotReady(Exception):
    """No image is loaded yet: only super users are served."""


class _Entry(NamedTuple):
    """An entry without its id."""

    resource_type: int
    pattern: Pattern
    principal: str
    host: str
    bit: int


class StandardAuthorizer:
    """Decides by the entries of the last image that it got."""

    def __init__(self, super_users: frozenset[str], *, allows_without_acl: bool = False) -> None:
        self._super_users = super_users
        self._allows_without_acl = allows_without_acl
        self._by_type: dict[int, ResourceAcls] = {}
        self._entries: dict[_Entry, int] = {}
        """Number of ids by entry; a controller records each entry only once."""
        self.acl_count = 0
        """Number of ids."""
        self.is_loaded = False
        """Whether an image is loaded; until then only super users are allowed."""

    def load(self, image: MetadataImage) -> None:
        """Replace all entries by those of an image: at the start, and after a snapshot."""
        self._by_type.clear()
        self._entries.clear()
        self.acl_count = 0
        for acl in image.acls.values():
            self._add(acl)
        self.is_loaded = True
        assert self.acl_count == len(image.acls)
        assert len(self._entries) <= self.acl_count

    def apply(self, delta: MetadataDelta) -> None:
        """Apply the added and removed entries of a delta."""
        assert self.is_loaded, "an image is loaded before changes of it"
        for acl_id in delta.acls:
            before, after = delta.before.acls.get(acl_id), delta.after.acls.get(acl_id)
            if before is not None:
                self._remove(before)
            if after is not None:
                self._add(after)
        assert self.acl_count == len(delta.after.acls)

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return whether a principal at a host may perform an operation on a resource."""
        if str(principal) in self._super_users:
            return True
        return self._allows(self._bits(principal, host, resource_type, name), operation)

    def authorize_any(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Return whether the operation is allowed on some name of a resource type (KIP-679).

        Here no operation implies another, and an allowed pattern does not count if the same one or
        a prefix of it is denied.
        """
        if self.authorize(principal, host, operation, resource_type, _HARDCODED_NAME):
            return True
        acls = self._by_type.get(resource_type)
        if acls is None:
            return False
        found = list(acls.patterns(entries_name(principal), host))
        denied = {pattern for pattern, bits in found if bits & denying[operation]}
        if Pattern(WILDCARD, False) in denied:
            return False
        granted = (pattern for pattern, bits in found if bits & exactly_allowing[operation])
        return any(
            pattern == (WILDCARD, False) or not any(each in denied for each in _covering(pattern))
            for pattern in granted
        )

    def allowed_operations(
        self, principal: Principal, host: str, resource_type: ResourceType, name: str
    ) -> int:
        """Return the allowed operations, a bit for each code (KIP-430)."""
        operations = OPERATIONS_OF[resource_type]
        if str(principal) not in self._super_users:
            bits = self._bits(principal, host, resource_type, name)
            operations = tuple(each for each in operations if self._allows(bits, each))
        allowed = sum(1 << each for each in operations)
        assert allowed & 0b111 == 0, "codes of operations begin at 3"
        return allowed

    def rule(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> str:
        """Return the reason of a decision, in the words of Kafka's audit log."""
        assert operation in denying, operation
        if str(principal) in self._super_users:
            return "SuperUser"
        acls = self._by_type.get(resource_type)
        found = [] if acls is None else list(acls.entries(name, entries_name(principal), host))
        for wanted, permission in ((denying, "DENY"), (allowing, "ALLOW")):
            for pattern, who, at, bits in found:
                if bits & wanted[operation]:
                    kind = "PREFIXED" if pattern.is_prefix else "LITERAL"
                    return (
                        f"MatchingAcl(acl=StandardAcl(resourceType={resource_type.name}, "
                        f"resourceName={pattern.name}, patternType={kind}, principal={who}, "
                        f"host={at}, operation={matched(bits & wanted[operation])}, "
                        f"permissionType={permission}))"
                    )
        bits_of_all = None if acls is None else acls.bits(name, entries_name(principal), host)
        allows = bits_of_all is None and self._allows_without_acl
        return "DefaultAllow" if allows else "DefaultDeny"

    def _bits(
        self, principal: Principal, host: str, resource_type: ResourceType, name: str
    ) -> int | None:
        if not self.is_loaded:
            raise AuthorizerNotReady(f"no image is loaded: {principal} cannot be served")
        acls = self._by_type.get(resource_type)
        return None if acls is None else acls.bits(name, entries_name(principal), host)

    def _allows(self, bits: int | None, operation: AclOperation) -> bool:
        if bits is None:
            return self._allows_without_acl
        return not bits & denying[operation] and bits & allowing[operation] != 0

    def _add(self, acl: AclImage) -> None:
        entry = _entry(acl)
        count = self._entries.get(entry, 0)
        self._entries[entry] = count + 1
        self.acl_count += 1
        assert len(self._entries) <= self.acl_count
        if count == 0:
            acls = self._by_type.get(entry.resource_type)
            if acls is None:
                acls = self._by_type[entry.resource_type] = ResourceAcls()
            acls.set_bit(entry.pattern, entry.principal, entry.host, entry.bit)

    def _remove(self, acl: AclImage) -> None:
        entry = _entry(acl)
        count = self._entries[entry]
        self.acl_count -= 1
        assert count > 0, entry
        if count > 1:
            self._entries[entry] = count - 1
            return
        del self._entries[entry]
        acls = self._by_type[entry.resource_type]
        assert len(self._entries) <= self.acl_count
        acls.clear_bit(entry.pattern, entry.principal, entry.host, entry.bit)


def _entry(acl: AclImage) -> _Entry:
    pattern = Pattern(acl.resource_name, acl.pattern_type != _LITERAL)
    bit = entry_bit(acl.operation, acl.permission_type)
    return _Entry(acl.resource_type, pattern, acl.principal, acl.host, bit)


def _covering(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the pattern itself, and each prefix of its name."""
    yield pattern
    for length in range(1, len(pattern.name) + 1):
        yield Pattern(pattern.name[:length], True)
