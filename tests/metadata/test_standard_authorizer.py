"""`StandardAuthorizer`: recorded decisions of Apache's class, deltas, and what Kafka documents.

Ids are those of docs/KIPS.md; tests/metadata/test_authorizer_against_apache.py has the judge.
"""

from dataclasses import replace
from random import Random

import pytest

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.metadata.authorizer.operation_bits import OPERATIONS_OF
from kraft_wire.metadata.authorizer.principal import host_text, super_users
from kraft_wire.metadata.authorizer.resource_acls import Pattern, ResourceAcls
from kraft_wire.metadata.authorizer.standard_authorizer import (
    AuthorizerNotReady,
    StandardAuthorizer,
)
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import EMPTY_IMAGE, AclImage, MetadataImage
from kraft_wire.model import ANONYMOUS, Principal, Uuid
from tests.metadata.authorizer_stories import OurAuthorizer
from tests.metadata.test_authorizer_against_apache import RECORDED, is_apaches_fault

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ANN = Principal("User", "ann")
HOST = "10.0.0.1"
DENY, ALLOW = 2, 3
NO_BITS = 0


def acl(
    name: str,
    *,
    prefixed: bool = False,
    permission: int = ALLOW,
    operation: int = READ,
    resource_type: int = TOPIC,
) -> AclImage:
    """Return an entry about User:ann."""
    pattern = 4 if prefixed else 3
    return AclImage(resource_type, name, pattern, "User:ann", "*", operation, permission)


def image(*acls: AclImage) -> MetadataImage:
    """Return an image of entries alone."""
    ids = (Uuid(number.to_bytes(16, "big")) for number in range(1, len(acls) + 1))
    return replace(EMPTY_IMAGE, acls=dict(zip(ids, acls, strict=True)))


def over(*acls: AclImage, allows: bool = False) -> StandardAuthorizer:
    """Return an authorizer over entries, with one super user."""
    authorizer = StandardAuthorizer(super_users("User:root"), allows_without_acl=allows)
    authorizer.load(image(*acls))
    return authorizer


def test_recorded_decisions_of_apaches_class() -> None:
    """What Apache's class answered, for machines without Java.

    SEC-ACL-01, SEC-ACL-02, SEC-ACL-03, SEC-ACL-04, SEC-ACL-05, SEC-ACL-06, SEC-ACL-07, SEC-ACL-08,
    SEC-ACL-09.
    """
    written = RECORDED.read_text(encoding="utf-8").splitlines()
    lines = [line.split("\t= ")[0] for line in written]
    theirs = [line.split("\t= ") for line in written if "\t= " in line]
    ours = OurAuthorizer().answers(lines)
    assert len(ours) == len(theirs) > 4000
    for (line, answer), our in zip(theirs, ours, strict=True):
        assert answer == our or is_apaches_fault(line, answer), line


def test_star_is_an_ordinary_beginning_of_a_name() -> None:
    """SEC-ACL-12: `*` covers names that begin with it, and a user may be called `*`."""
    assert over(acl("*")).authorize(ANN, HOST, READ, TOPIC, "*a")
    refuses = over(acl("*", permission=DENY), allows=True)
    assert not refuses.authorize(ANN, HOST, READ, TOPIC, "*a")
    star = Principal("User", "*")
    assert not over(acl("t")).authorize(star, HOST, READ, TOPIC, "t")
    assert over().authorize(Principal("User", "root"), HOST, READ, TOPIC, "!!foo")
    neighbours = over(acl("!!fx"), acl("!!foo"))
    assert neighbours.authorize(ANN, HOST, READ, TOPIC, "!!foo")
    assert not neighbours.authorize(ANN, HOST, READ, TOPIC, "!!f")


@pytest.mark.parametrize(
    ("allowed", "denied", "is_allowed"),
    [
        (acl("*"), acl("*", prefixed=True, permission=DENY), True),
        (acl("*"), acl("*", permission=DENY), False),
        (acl("*a"), acl("*", prefixed=True, permission=DENY), False),
        (acl("a"), acl("*", prefixed=True, permission=DENY), True),
        (acl("ab", prefixed=True), acl("a", prefixed=True, permission=DENY), False),
        (acl("a", prefixed=True), acl("ab", prefixed=True, permission=DENY), True),
        (acl("ab"), acl("ab", permission=DENY), False),
        (acl("ab"), acl("abc", permission=DENY), True),
    ],
)
def test_some_name_is_allowed_beside_what_is_denied(
    allowed: AclImage, denied: AclImage, *, is_allowed: bool
) -> None:
    """KIP-679: as `Authorizer.authorizeByResourceType` goes over the entries."""
    assert over(allowed, denied).authorize_any(ANN, HOST, READ, TOPIC) is is_allowed


def test_a_star_that_is_allowed_ends_the_search_for_some_name() -> None:
    """KIP-679: a denied beginning `*` does not count, also where `hardcode` itself is denied.

    `Authorizer.authorizeByResourceType` asks for that name first.
    """
    denied = acl("*", prefixed=True, permission=DENY), acl("hardcode", permission=DENY)
    assert over(acl("*"), *denied).authorize_any(ANN, HOST, READ, TOPIC)
    assert not over(acl("*a"), *denied).authorize_any(ANN, HOST, READ, TOPIC)


def test_nobody_but_super_users_is_served_before_an_image_is_loaded() -> None:
    authorizer = StandardAuthorizer(super_users("User:root"), allows_without_acl=True)
    root = Principal("User", "root")
    assert authorizer.authorize(root, HOST, WRITE, TOPIC, "t")
    assert authorizer.authorize_any(root, HOST, WRITE, TOPIC)
    assert authorizer.allowed_operations(root, HOST, TOPIC, "t")
    with pytest.raises(AuthorizerNotReady, match="User:ann cannot be served"):
        authorizer.authorize(ANN, HOST, WRITE, TOPIC, "t")
    with pytest.raises(AuthorizerNotReady):
        authorizer.authorize_any(ANN, HOST, WRITE, TOPIC)
    with pytest.raises(AuthorizerNotReady):
        authorizer.allowed_operations(ANN, HOST, TOPIC, "t")


@pytest.mark.parametrize(("resource_type", "bits"), [(TOPIC, 3576), (CLUSTER, 8096), (GROUP, 3400)])
def test_super_user_has_every_operation_of_a_resource(
    resource_type: ResourceType, bits: int
) -> None:
    """KIP-430: the numbers are those of a running 4.3.1 node."""
    root = Principal("User", "root")
    assert over().allowed_operations(root, HOST, resource_type, "x") == bits
    assert over(allows=True).allowed_operations(ANN, HOST, resource_type, "x") == bits
    assert over().allowed_operations(ANN, HOST, resource_type, "x") == NO_BITS


def test_allowed_operations_are_those_that_are_decided_one_by_one() -> None:
    """KIP-430: for every type, among allowed, implied and denied operations."""
    random = Random(3)
    for kind, operations in OPERATIONS_OF.items():
        acls = [
            acl("x", resource_type=kind, operation=each, permission=random.choice((DENY, ALLOW)))
            for each in random.sample([2, *operations], k=min(3, len(operations)))
        ]
        authorizer = over(*acls)
        bits = authorizer.allowed_operations(ANN, HOST, kind, "x")
        for each in operations:
            assert bool(bits >> each & 1) is authorizer.authorize(ANN, HOST, each, kind, "x")


def test_changes_of_the_image_hold_at_once() -> None:
    """KIP-801: an authorizer that follows deltas is one that loads each image anew."""
    random = Random(11)
    names, follower = ("a", "ab", "abc", "*"), over()
    acls: dict[Uuid, AclImage] = {}
    before = replace(EMPTY_IMAGE, acls={})
    for number in range(1, 400):
        if acls and random.random() < 0.5:
            del acls[random.choice(list(acls))]
        else:
            made = acl(
                random.choice(names),
                prefixed=random.random() < 0.5,
                permission=random.choice((DENY, ALLOW)),
                operation=random.choice((2, READ, WRITE)),
            )
            acls[Uuid(number.to_bytes(16, "big"))] = made  # now and then the same entry twice
        after = replace(before, acls=dict(acls), offset=number)
        follower.apply(MetadataDelta.between(before, after))
        fresh, before = over(*acls.values()), after
        assert follower.acl_count == len(acls)
        for name in (*names, "abcd", "b"):
            answers = [each.authorize(ANN, HOST, READ, TOPIC, name) for each in (follower, fresh)]
            assert answers[0] is answers[1], (number, name)
        assert follower.authorize_any(ANN, HOST, WRITE, TOPIC) is fresh.authorize_any(
            ANN, HOST, WRITE, TOPIC
        )


def test_index_forgets_what_is_removed() -> None:
    index = ResourceAcls()
    entries = [
        (Pattern(name, is_prefix), who, host, bit)
        for name in ("a", "bb")
        for is_prefix in (False, True)
        for who in ("User:ann", "User:bob")
        for host in ("*", HOST)
        for bit in (1, 2)
    ]
    for entry in entries:
        index.set_bit(*entry)
    Random(1).shuffle(entries)
    for entry in entries:
        index.clear_bit(*entry)
    assert vars(index) == vars(ResourceAcls())


def test_entry_of_a_later_release_grants_nothing_and_covers() -> None:
    for operation in range(32, 128):
        authorizer = over(acl("t", operation=operation), allows=True)
        found = [each for each in AclOperation if authorizer.authorize(ANN, HOST, each, TOPIC, "t")]
        assert found == [], operation
        assert authorizer.authorize(ANN, HOST, READ, TOPIC, "other")


def test_principals_type_ends_at_the_first_colon_of_an_entry() -> None:
    """SEC-ACL-05: texts that are equal are not yet the same principal."""
    authorizer = over(replace(acl("t"), principal="User:x:y"))
    assert authorizer.authorize(Principal("User", "x:y"), HOST, READ, TOPIC, "t")
    assert not authorizer.authorize(Principal("User:x", "y"), HOST, READ, TOPIC, "t")


def test_hosts_are_texts_as_java_writes_them() -> None:
    """SEC-ACL-06: IPv6 in the long form, a mapped IPv4 as IPv4; no names."""
    assert host_text("::ffff:10.0.0.1") == "10.0.0.1"
    assert host_text("2001:db8::ff00:42") == "2001:db8:0:0:0:0:ff00:42"
    assert host_text("fe80::1%2") == "fe80:0:0:0:0:0:0:1%2"
    with pytest.raises(ValueError, match="localhost"):
        host_text("localhost")


def test_super_users_without_a_colon_are_refused() -> None:
    """SEC-ACL-01: Apache refuses to start with them."""
    assert super_users(" User:CN=a,O=b ;; User:c;") == {"User:CN=a,O=b", "User:c"}
    trimmed = super_users("\x01User:a\t;User:b\u2003")
    assert trimmed == {"User:a", "User:b\u2003"}, "as String.trim, which removes up to U+0020"
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    with pytest.raises(ValueError, match="'root' is not of the form Type:Name"):
        super_users("User:a;root")
