"""DescribeAcls, API key 29, where the broker has an authorizer: entries that a filter matches."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.acl_entries import (
    ALLOW,
    DENY,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Entry,
    Filter,
    ends_connection,
    entries_in,
    principal_of,
    stored,
)
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_acls import DescribeAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-140, KIP-290, org.apache.kafka.metadata.authorizer.StandardAuthorizer, acls"
_HOST: Final = "192.0.2.1"


def _shows(broker: Subject, version: int, wanted: Filter, *entries: Entry) -> None:
    """State that a filter shows these entries, and no other."""
    answer = broker.ask(wanted.of_description(), version, DescribeAclsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    found = entries_in(answer)
    expect.true(found == sorted(entries), str(sorted(entries)), found, "resources")
    names = [
        (each.resource_type, each.pattern_type, each.resource_name) for each in answer.resources
    ]
    expect.true(len(set(names)) == len(names), "each resource once", names, "resources")


@case("DescribeAcls", _SOURCE)
def each_field_of_a_filter(broker: Subject, version: int) -> None:
    """A filter shows the entries that are like it in each field; null and ANY are like all.

    Create entries that differ in one field each; describe all, and by each field alone.
    """
    name, principal = broker.name(), principal_of(broker)
    usual = Entry(principal, name)
    other_name, group, prefixed, host, write, denied = (
        usual._replace(name=broker.name()),
        usual._replace(resource_type=GROUP),
        usual._replace(pattern_type=PREFIXED),
        usual._replace(host=_HOST),
        usual._replace(operation=WRITE),
        usual._replace(permission=DENY),
    )
    everything = (usual, other_name, group, prefixed, host, write, denied)
    with stored(broker, everything):
        of_all = Filter(principal)
        _shows(broker, version, of_all, *everything)
        _shows(broker, version, of_all._replace(name=other_name.name), other_name)
        _shows(broker, version, of_all._replace(resource_type=GROUP), group)
        _shows(broker, version, of_all._replace(pattern_type=PREFIXED), prefixed)
        _shows(broker, version, of_all._replace(host=_HOST), host)
        _shows(broker, version, of_all._replace(operation=WRITE), write)
        _shows(broker, version, of_all._replace(permission=DENY), denied)
        exact = Filter(principal, name, TOPIC, LITERAL, "*", READ, ALLOW)
        _shows(broker, version, exact, usual)


@case("DescribeAcls", "KIP-290")
def patterns_that_cover_a_name(broker: Subject, version: int) -> None:
    """The pattern MATCH shows the entries that count for a name: literal ones and its beginnings.

    Create a literal entry, prefixes of the name, and one of another; describe the name by MATCH.
    """
    name, principal = broker.name(), principal_of(broker)
    literal = Entry(principal, name)
    half = Entry(principal, name[: len(name) // 2], pattern_type=PREFIXED)
    whole = Entry(principal, name, pattern_type=PREFIXED)
    longer = Entry(principal, f"{name}-longer", pattern_type=PREFIXED)
    beginning = Entry(principal, name[:-1])
    with stored(broker, (literal, half, whole, longer, beginning)):
        of_name = Filter(principal, name, TOPIC)
        _shows(broker, version, of_name._replace(pattern_type=MATCH), literal, half, whole)
        _shows(broker, version, of_name, literal, whole)
        _shows(broker, version, of_name._replace(pattern_type=LITERAL), literal)
        _shows(broker, version, of_name._replace(pattern_type=PREFIXED), whole)


@case("DescribeAcls", _SOURCE)
def nothing_that_matches(broker: Subject, version: int) -> None:
    """A filter that matches nothing shows nothing.

    Describe the entries of a principal that has none.
    """
    answer = broker.ask(
        Filter(principal_of(broker)).of_description(), version, DescribeAclsResponse
    )
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "resources", [])


@case("DescribeAcls", _SOURCE)
def unknown_codes(broker: Subject, version: int) -> None:
    """A code that Kafka does not have ends the connection.

    Describe entries of an unknown type, pattern, operation and permission.
    """
    of_all = Filter(principal_of(broker))
    for unknown in (
        of_all._replace(resource_type=0),
        of_all._replace(pattern_type=0),
        of_all._replace(operation=0),
        of_all._replace(permission=0),
    ):
        ends_connection(broker, unknown.of_description(), version)
