"""Rights that are asked for before the entries are loaded, once for each topic, by any address."""

from __future__ import annotations

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import key_of
from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.broker.context import CLOSE, RequestContext
from kraft_wire.metadata.authorizer.standard_authorizer import StandardAuthorizer
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.node.authorization import guards as module
from kraft_wire.node.authorization.asker import Passed
from kraft_wire.node.authorization.guards import Guards
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.broker.small_broker import context as context_of
from tests.node.authorization.guarded_node import STRANGER, TOPIC, GuardedDoor, guarded_node

FETCH, SHARE_FETCH = key_of("Fetch"), key_of("ShareFetch")
ALTER_CONFIGS = key_of("IncrementalAlterConfigs")


def asked_from(host: str) -> RequestContext:
    context = context_of(0)
    context.client_host = host
    return context


def guards_of(node: GuardedDoor) -> Guards:
    guards = node.node._guards
    assert guards is not None
    return guards


def test_nobody_has_a_right_before_the_entries_are_loaded() -> None:
    """AuthorizerNotReadyException of 4.3.1: not even with allow.everyone.if.no.acl.found."""
    told: list[tuple[str, dict[str, object]]] = []
    authorizer = StandardAuthorizer(frozenset({"User:root"}), allows_without_acl=True)
    guards = Guards(authorizer, lambda name, **fields: told.append((name, fields)))
    stranger = asked_from(STRANGER)
    settings = guarded_node().node.broker.settings.source
    for _ in range(2):
        image = MetadataImage()
        asked = ListenerType.BROKER, stranger, ListGroupsRequest(), image, settings
        assert guards.judge(*asked) is CLOSE
    assert told == [("acls_not_loaded", {"client": STRANGER, "api": "ListGroups"})]
    assert not guards.may_alter_brokers(stranger, ALTER_CONFIGS)
    for is_follower in (False, True):
        may_fetch = guards.fetch_rights(stranger, is_follower=is_follower)
        assert [may_fetch(name) for name in ("mine", None)] == [False, False]
    authorizer.load(MetadataImage())
    assert isinstance(guards.judge(*asked), Passed)
    assert guards.may_alter_brokers(stranger, ALTER_CONFIGS)
    may_fetch = guards.fetch_rights(stranger, is_follower=False)
    assert [may_fetch(name) for name in ("mine", None)] == [True, True]


def test_a_share_fetch_asks_once_for_each_topic() -> None:
    """handleShareFetchRequest of 4.3.1: READ of each topic, with one line for each denial."""
    node = guarded_node("mine", "theirs")
    node.permit(TOPIC, "mine", Op.READ)
    node.denied.clear()
    may_read = guards_of(node).share_rights(asked_from(STRANGER), SHARE_FETCH)
    asked = ["mine", "theirs", "missing", "theirs", "mine"]
    assert [may_read(name) for name in asked] == [True, False, False, False, True]
    assert len(node.denied) == 2


def test_an_address_is_read_alike_after_very_many_others() -> None:
    """The texts of addresses are kept, but not without a limit."""
    node = guarded_node("mine")
    node.permit(TOPIC, "mine", Op.READ)
    guards = guards_of(node)
    for number in range(module._HOSTS_MAX + 5):
        assert guards._host(f"10.1.{number >> 8}.{number & 255}").startswith("10.1.")
    assert len(guards._hosts) <= module._HOSTS_MAX
    for host, expected in ((STRANGER, True), (f"/{STRANGER}", True), ("10.1.0.1", False)):
        may_read = guards.fetch_rights(asked_from(host), is_follower=False)
        assert may_read("mine") is expected
