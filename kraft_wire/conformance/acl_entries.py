"""Entries of access lists for the cases about them: each case has a principal of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kraft_wire.wire.generated.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = [
    "ALLOW",
    "ANY",
    "DENY",
    "GROUP",
    "LITERAL",
    "MATCH",
    "PREFIXED",
    "READ",
    "TOPIC",
    "WRITE",
    "Entry",
    "Filter",
    "described",
    "ends_connection",
    "entries_in",
    "principal_of",
    "remove_all",
    "stored",
]

F = TypeVar("F", DescribeAclsRequest, DeleteAclsFilter)

ANY: Final = 1
TOPIC, GROUP = 2, 3
MATCH, LITERAL, PREFIXED = 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3


class Entry(NamedTuple):
    """One entry; by default it allows its principal to read a topic, from any address."""

    principal: str
    name: str
    resource_type: int = TOPIC
    pattern_type: int = LITERAL
    host: str = "*"
    operation: int = READ
    permission: int = ALLOW

    def creation(self) -> AclCreation:
        """Return the entry as CreateAcls has it."""
        return AclCreation(
            resource_type=self.resource_type,
            resource_name=self.name,
            resource_pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )


class Filter(NamedTuple):
    """What entries must be like; by default all entries of a principal match."""

    principal: str | None
    name: str | None = None
    resource_type: int = ANY
    pattern_type: int = ANY
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def of_description(self) -> DescribeAclsRequest:
        """Return a request for the entries."""
        return self._as(DescribeAclsRequest)

    def of_deletion(self) -> DeleteAclsFilter:
        """Return the filter as DeleteAcls has it."""
        return self._as(DeleteAclsFilter)

    def _as(self, kind: Callable[..., F]) -> F:
        return kind(
            resource_type_filter=self.resource_type,
            resource_name_filter=self.name,
            pattern_type_filter=self.pattern_type,
            principal_filter=self.principal,
            host_filter=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )


def principal_of(broker: Subject) -> str:
    """Return a new principal. Errors: NotSupported if the broker has no authorizer."""
    principal = f"User:{broker.name('principal')}"
    answer = broker.prepare(Filter(principal).of_description(), DescribeAclsResponse)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        raise NotSupported("the broker has no authorizer")
    return principal


def entries_in(answer: DescribeAclsResponse) -> list[Entry]:
    """Return the entries of a description, in an order of their own."""
    return sorted(
        Entry(
            acl.principal,
            each.resource_name,
            each.resource_type,
            each.pattern_type,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in answer.resources
        for acl in each.acls
    )


def described(broker: Subject, principal: str, count: int) -> list[Entry]:
    """Return a principal's entries, once the broker describes so many of them."""
    for _ in broker.attempts(f"{count} entries to be described"):
        answer = broker.prepare(Filter(principal).of_description(), DescribeAclsResponse)
        found = entries_in(answer)
        if len(found) == count:
            return found
    raise AssertionError("attempts end in an exception")


@contextmanager
def stored(broker: Subject, entries: Sequence[Entry]) -> Iterator[None]:
    """Store entries of one principal, and remove all that it has at the end."""
    principal = entries[0].principal
    try:
        request = CreateAclsRequest(creations=[each.creation() for each in entries])
        answer = broker.prepare(request, CreateAclsResponse)
        for index in range(len(entries)):
            expect.error(answer, f"results[{index}].error_code", ErrorCode.NONE)
        described(broker, principal, len(entries))
        yield
    finally:
        remove_all(broker, principal)


def ends_connection(broker: Subject, request: Message, version: int) -> None:
    """State that a request ends its connection without a response."""
    line = broker.connect()
    payload, _ = line.encoded(request, version)
    line.send_frame(payload)
    expect.closed(line)


def remove_all(broker: Subject, principal: str) -> None:
    """Remove all entries of a principal."""
    request = DeleteAclsRequest(filters=[Filter(principal).of_deletion()])
    broker.prepare(request, DeleteAclsResponse)
