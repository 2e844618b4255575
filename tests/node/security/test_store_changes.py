"""Which listeners get other stores by a committed change."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.event_log import Line
from kraft_wire.node.security.store_changes import StoreChanges

NODE = """
node.id=1
process.roles=broker
listeners=ONE://127.0.0.1:1,TWO://127.0.0.1:2,OPEN://127.0.0.1:3
listener.security.protocol.map=ONE:SSL,TWO:SSL,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
controller.listener.names=CONTROLLER
controller.quorum.voters=2@h:2
log.dirs=/a
ssl.keystore.type=PEM
ssl.keystore.location=/store.pem
"""


class Exchanged:
    """A host that notes which listener uses which store."""

    def __init__(self, problem: str | None = None) -> None:
        """`problem` is why no listener can use its stores."""
        self.stores: dict[str, str | None] = {}
        self._problem = problem

    def problem(self, listener: str, tls: TlsSettings) -> str | None:
        raise AssertionError("a committed change is not checked before")

    def exchange(self, listener: str, tls: TlsSettings, *, is_start: bool) -> str | None:
        assert tls.key_store is not None
        self.stores[listener] = tls.key_store.location
        return self._problem


def committed(host: Exchanged, values: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """Commit stores as this broker's settings; return the lines, with each text as such."""
    config = load_config(settings_of_file(NODE, "server.properties"), {})
    lines: list[tuple[str, dict[str, str]]] = []

    def report(name: str, **fields: object) -> None:
        texts = {key: each.text if isinstance(each, Line) else each for key, each in fields.items()}
        lines.append((name, cast(Any, texts)))

    changes = StoreChanges(config, report)
    changes.attach(host)
    own = changes._own
    after = SimpleNamespace(config=lambda *key: values if key == own else {})
    changes.publish(cast(Any, SimpleNamespace(named_configs={own}, after=after)))
    return lines


@pytest.mark.parametrize(
    ("named", "stores"),
    [
        (["one"], {"ONE": "/new-one.pem"}),
        (["two"], {"TWO": "/new-two.pem"}),
        (["one", "two"], {"ONE": "/new-one.pem", "TWO": "/new-two.pem"}),
        (["open"], {}),
    ],
)
def test_listeners_that_a_change_names_use_their_new_stores(
    named: list[str], stores: dict[str, str]
) -> None:
    """KIP-226: several listeners may be named at once."""
    host = Exchanged()
    values = {f"listener.name.{each}.ssl.keystore.location": f"/new-{each}.pem" for each in named}
    lines = committed(host, values)
    assert host.stores == stores
    assert lines == [("stores_exchanged", {"listener": each}) for each in stores]


def test_stores_that_the_host_cannot_use_are_reported_with_its_reason() -> None:
    host = Exchanged("/new.pem: No such file or directory")
    lines = committed(host, {"listener.name.two.ssl.keystore.location": "/new.pem"})
    assert host.stores == {"TWO": "/new.pem"}
    reason = "/new.pem: No such file or directory"
    assert lines == [("stores_not_exchanged", {"listener": "TWO", "reason": reason})]


def test_stores_whose_settings_contradict_are_reported_and_not_given_to_the_host() -> None:
    """A change at a controller is not checked before; the other listener has its new store."""
    host = Exchanged()
    lines = committed(
        host,
        {
            "listener.name.one.ssl.keystore.key": "a key",
            "listener.name.two.ssl.keystore.location": "/new.pem",
        },
    )
    assert host.stores == {"TWO": "/new.pem"}
    place = "server.properties:11: ssl.keystore.location=/store.pem"
    reason = f"{place}: the key is given twice: as a file and as ssl.keystore.key"
    assert lines == [
        ("stores_not_exchanged", {"listener": "ONE", "reason": reason}),
        ("stores_exchanged", {"listener": "TWO"}),
    ]
