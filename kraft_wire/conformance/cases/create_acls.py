"""CreateAcls, API key 30, where the broker has an authorizer: new entries of access lists."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.acl_entries import (
    DENY,
    GROUP,
    PREFIXED,
    WRITE,
    Entry,
    described,
    ends_connection,
    principal_of,
    remove_all,
)
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.create_acls import CreateAclsRequest, CreateAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-140, org.apache.kafka.controller.AclControlManager, createAcls"
_CLUSTER: Final = 4


@contextmanager
def _principal(broker: Subject) -> Iterator[str]:
    principal = principal_of(broker)
    try:
        yield principal
    finally:
        remove_all(broker, principal)


def _create(broker: Subject, version: int, *entries: Entry) -> CreateAclsResponse:
    request = CreateAclsRequest(creations=[each.creation() for each in entries])
    return broker.ask(request, version, CreateAclsResponse)


def _outcomes(answer: CreateAclsResponse, *codes: ErrorCode) -> None:
    for index, code in enumerate(codes):
        expect.error(answer, f"results[{index}].error_code", code)
    expect.true(len(answer.results) == len(codes), f"{len(codes)}", len(answer.results), "results")


def _are(broker: Subject, principal: str, *wanted: Entry) -> None:
    found = described(broker, principal, len(wanted))
    expect.true(found == sorted(wanted), str(sorted(wanted)), found, "resources")


@case("CreateAcls", _SOURCE)
def entries_of_each_kind(broker: Subject, version: int) -> None:
    """Entries are kept with each of their fields.

    Create entries with other types, patterns, hosts, operations and permissions; describe them.
    """
    with _principal(broker) as principal:
        name = broker.name()
        entries = (
            Entry(principal, name),
            Entry(principal, name, operation=WRITE, permission=DENY),
            Entry(principal, name, host="192.0.2.1"),
            Entry(principal, name, resource_type=GROUP),
            Entry(principal, name, pattern_type=PREFIXED),
        )
        _outcomes(_create(broker, version, *entries), *[ErrorCode.NONE] * len(entries))
        _are(broker, principal, *entries)


@case("CreateAcls", _SOURCE)
def entry_that_exists(broker: Subject, version: int) -> None:
    """An entry that exists is accepted, and stays one.

    Create an entry twice in one request, then again.
    """
    with _principal(broker) as principal:
        entry = Entry(principal, broker.name())
        _outcomes(_create(broker, version, entry, entry), ErrorCode.NONE, ErrorCode.NONE)
        _are(broker, principal, entry)
        _outcomes(_create(broker, version, entry), ErrorCode.NONE)
        _are(broker, principal, entry)


@case("CreateAcls", _SOURCE)
def one_of_three_is_refused(broker: Subject, version: int) -> None:
    """Results are in the order of the entries, and a refused one does not touch the others.

    Create an entry, one without a name, and another.
    """
    with _principal(broker) as principal:
        first, last = (Entry(principal, broker.name()) for _ in range(2))
        answer = _create(broker, version, first, Entry(principal, ""), last)
        _outcomes(answer, ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
        _are(broker, principal, first, last)


def _refused(broker: Subject, version: int, entry: Entry) -> None:
    with _principal(broker):
        _outcomes(_create(broker, version, entry), ErrorCode.INVALID_REQUEST)


@case("CreateAcls", _SOURCE)
def cluster_by_another_name(broker: Subject, version: int) -> None:
    """The cluster has one name, and another is refused with INVALID_REQUEST.

    Create an entry of the cluster `other`.
    """
    _refused(broker, version, Entry(principal_of(broker), "other", resource_type=_CLUSTER))


@case("CreateAcls", _SOURCE)
def principal_without_a_type(broker: Subject, version: int) -> None:
    """A principal without a type is refused with INVALID_REQUEST.

    Create an entry for `nobody`.
    """
    _refused(broker, version, Entry("nobody", broker.name()))


@case("CreateAcls", _SOURCE)
def unknown_codes(broker: Subject, version: int) -> None:
    """A code that Kafka does not have ends the connection.

    Create entries of an unknown type, pattern, operation and permission.
    """
    entry = Entry(principal_of(broker), broker.name())
    for unknown in (
        entry._replace(resource_type=0),
        entry._replace(pattern_type=0),
        entry._replace(operation=0),
        entry._replace(permission=0),
    ):
        request = CreateAclsRequest(creations=[unknown.creation()])
        ends_connection(broker, request, version)
