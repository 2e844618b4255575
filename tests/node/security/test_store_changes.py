"""Which listeners get other stores by a committed change."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.config.security import TlsSettings
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

    def __init__(self) -> None:
        self.stores: dict[str, str | None] = {}

    def problem(self, listener: str, tls: TlsSettings) -> str | None:
        raise AssertionError("a committed change is not checked before")

    def exchange(self, listener: str, tls: TlsSettings, *, is_start: bool) -> str | None:
        assert tls.key_store is not None
        self.stores[listener] = tls.key_store.location
        return None


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
    config = load_config(settings_of_file(NODE, "server.properties"), {})
    lines: list[tuple[str, object]] = []
    changes = StoreChanges(config, lambda event, **fields: lines.append((event, fields)))
    host = Exchanged()
    changes.attach(host)
    values = {f"listener.name.{each}.ssl.keystore.location": f"/new-{each}.pem" for each in named}
    own = changes._own
    after = SimpleNamespace(config=lambda *key: values if key == own else {})
    changes.publish(cast(Any, SimpleNamespace(named_configs={own}, after=after)))
    assert host.stores == stores
    assert lines == [("stores_exchanged", {"listener": each}) for each in stores]
