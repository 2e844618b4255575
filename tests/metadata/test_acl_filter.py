"""Which entries a filter means: KIP-290's pattern types, by name and permission.

The cases of MATCH are those of Apache's `ResourcePatternFilter`: what an authorizer would ask for
that name.
"""

import pytest

from kraft_wire.metadata.acl_rules import AclFilter
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord

TOPIC, ALL, ANY = 2, 2, 1
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
PERMISSIONS = pytest.mark.parametrize("permission", [DENY, ALLOW])


def entry(name: str, pattern: int, permission: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:a",
        host="*",
        operation=ALL,
        permission_type=permission,
    )


def asking(name: str | None, pattern: int) -> AclFilter:
    return AclFilter(TOPIC, name, pattern, None, None, ANY, ANY)


@PERMISSIONS
@pytest.mark.parametrize(
    ("name", "pattern", "is_meant"),
    [
        ("orders-1", LITERAL, True),
        ("orders", LITERAL, False),
        ("*", LITERAL, True),
        ("orders", PREFIXED, True),
        ("orders-1", PREFIXED, True),
        ("orders-10", PREFIXED, False),
        ("*", PREFIXED, False),
    ],
)
def test_match_means_what_concerns_the_name(
    name: str, pattern: int, is_meant: bool, permission: int
) -> None:
    assert asking("orders-1", MATCH).matches(entry(name, pattern, permission)) is is_meant


@pytest.mark.parametrize(
    ("resource", "pattern", "is_unknown"),
    [(TOPIC, LITERAL, False), (99, LITERAL, True), (TOPIC, 99, True), (99, 99, True)],
)
def test_a_filter_names_a_resource_by_known_codes(
    resource: int, pattern: int, is_unknown: bool
) -> None:
    asked = AclFilter(resource, "orders", pattern, None, None, ANY, ANY)
    assert asked.resource_is_unknown is is_unknown


@PERMISSIONS
@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_other_pattern_types_mean_the_same_name_only(pattern: int, permission: int) -> None:
    for asked in (pattern, ANY):
        assert asking("orders", asked).matches(entry("orders", pattern, permission))
        assert not asking("orders-1", asked).matches(entry("orders", pattern, permission))
        assert not asking("orders-1", asked).matches(entry("*", pattern, permission))
    other = LITERAL + PREFIXED - pattern
    assert not asking("orders", other).matches(entry("orders", pattern, permission))


@pytest.mark.parametrize("pattern", [ANY, MATCH])
def test_no_name_means_all_names(pattern: int) -> None:
    for kind in (LITERAL, PREFIXED):
        assert asking(None, pattern).matches(entry("orders", kind, ALLOW))
