"""DeleteAcls, API key 31, where the broker has an authorizer: entries that a filter removes."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.acl_entries import (
    GROUP,
    MATCH,
    PREFIXED,
    TOPIC,
    WRITE,
    Entry,
    Filter,
    described,
    ends_connection,
    principal_of,
    stored,
)
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-140, org.apache.kafka.controller.AclControlManager, deleteAcls"


def _delete(broker: Subject, version: int, *filters: Filter) -> DeleteAclsResponse:
    request = DeleteAclsRequest(filters=[each.of_deletion() for each in filters])
    answer = broker.ask(request, version, DeleteAclsResponse)
    seen = len(answer.filter_results)
    expect.true(seen == len(filters), f"{len(filters)}", seen, "filter_results")
    return answer


def _removed(answer: DeleteAclsResponse, filter_index: int, *entries: Entry) -> None:
    """State that a filter has removed these entries, and no other."""
    path = f"filter_results[{filter_index}]"
    expect.error(answer, f"{path}.error_code", ErrorCode.NONE)
    found = sorted(
        Entry(
            each.principal,
            each.resource_name,
            each.resource_type,
            each.pattern_type,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in answer.filter_results[filter_index].matching_acls
    )
    wanted = sorted(entries)
    expect.true(found == wanted, str(wanted), found, f"{path}.matching_acls")
    for index in range(len(entries)):
        expect.error(answer, f"{path}.matching_acls[{index}].error_code", ErrorCode.NONE)


@case("DeleteAcls", _SOURCE)
def entries_that_match(broker: Subject, version: int) -> None:
    """The entries that a filter matches are removed and told; others stay.

    Create three entries, delete those of one operation.
    """
    usual = Entry(principal_of(broker), broker.name())
    write, group = usual._replace(operation=WRITE), usual._replace(resource_type=GROUP)
    with stored(broker, (usual, write, group)):
        answer = _delete(broker, version, Filter(usual.principal, operation=WRITE))
        _removed(answer, 0, write)
        left = described(broker, usual.principal, 2)
        expect.true(left == sorted((usual, group)), "the others", left, "resources")


@case("DeleteAcls", _SOURCE)
def several_filters(broker: Subject, version: int) -> None:
    """Each filter has its result, in their order; an entry that two match is told by both.

    Create two entries; delete one, both, and those of another principal.
    """
    usual = Entry(principal_of(broker), broker.name())
    group = usual._replace(resource_type=GROUP)
    with stored(broker, (usual, group)):
        of_all, of_none = Filter(usual.principal), Filter(principal_of(broker))
        answer = _delete(broker, version, of_all._replace(resource_type=GROUP), of_all, of_none)
        for index, wanted in enumerate(((group,), (usual, group), ())):
            _removed(answer, index, *wanted)
        described(broker, usual.principal, 0)


@case("DeleteAcls", "KIP-290")
def patterns_that_cover_a_name(broker: Subject, version: int) -> None:
    """The pattern MATCH removes the entries that count for a name: literal ones and its beginnings.

    Create a literal entry, a prefix and one of another name; delete the name by MATCH.
    """
    name = broker.name()
    literal = Entry(principal_of(broker), name)
    prefix = literal._replace(name=name[:-2], pattern_type=PREFIXED)
    other = literal._replace(name=f"{name}-other")
    with stored(broker, (literal, prefix, other)):
        wanted = Filter(literal.principal, name, TOPIC, MATCH)
        _removed(_delete(broker, version, wanted), 0, literal, prefix)
        left = described(broker, literal.principal, 1)
        expect.true(left == [other], "the other", left, "resources")


@case("DeleteAcls", _SOURCE)
def unknown_codes(broker: Subject, version: int) -> None:
    """A code that Kafka does not have ends the connection, and removes nothing.

    Delete the entries of an unknown type, pattern, operation and permission, beside all of them.
    """
    usual = Entry(principal_of(broker), broker.name())
    with stored(broker, (usual,)):
        of_all = Filter(usual.principal)
        for unknown in (
            of_all._replace(resource_type=0),
            of_all._replace(pattern_type=0),
            of_all._replace(operation=0),
            of_all._replace(permission=0),
        ):
            filters = [of_all.of_deletion(), unknown.of_deletion()]
            ends_connection(broker, DeleteAclsRequest(filters=filters), version)
        described(broker, usual.principal, 1)
