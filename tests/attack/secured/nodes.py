"""Attacks that need nodes of their own: a false peer, and the way around the broker."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_server
from typing import Any

from kraft_wire.apis.api import Api, ListenerType
from kraft_wire.apis.rows import ROWS
from kraft_wire.model import uuid_to_text
from kraft_wire.wire.generated.create_acls import CreateAclsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.json_form import message_to_json
from tests.apache.token_story import SECRET
from tests.apis.refusals import AUTHORIZER, request_of
from tests.apis.refusals import TOPIC as TOPIC_NAME
from tests.attack.secured.line import Line, host_and_port, outcome_of
from tests.attack.secured.target import CLUSTER, TOPIC, SecuredTarget, entry
from tests.certificates import Authority
from tests.server.linked_nodes import members, shared
from tests.waiting import until

_DESCRIBE = 8
_HEARD_S = 15.0
_OF_ONE_TOKEN = {"tokenId", "hmac", "issueTimestampMs", "expiryTimestampMs", "maxTimestampMs"}
"""Fields that differ between two tokens."""


# -- a false peer ----------------------------------------------------------------------------------


def false_controller(target: SecuredTarget) -> str:
    """S12: a broker sends nothing to a controller with a certificate for another host.

    It does where the check is turned off.
    """
    with _folder(target) as folder:
        authority = Authority(folder / "authority")
        settings = shared("SSL", authority, "far", hosts="DNS:far.example")
        heard, log = _in_place_of_the_controller(folder / "checked", settings)
        if heard or "IP address mismatch" not in log:
            return "the broker sends a request" if heard else "the log does not say why"
        settings["ssl.endpoint.identification.algorithm"] = ""
        heard, _ = _in_place_of_the_controller(folder / "unchecked", settings)
    return "refused" if heard else "the broker sends nothing without the check either"


def _in_place_of_the_controller(directory: Path, settings: dict[str, str]) -> tuple[bytes, str]:
    """Take the connection of a broker; return its first byte, and its log."""
    directory.mkdir()
    controller, broker = members(directory, settings, settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings["ssl.keystore.location"])
    heard = b""
    with create_server(host_and_port(controller.addresses["CONTROLLER"])) as server:
        server.settimeout(_HEARD_S)
        broker.begin()
        try:
            with suppress(OSError), server.accept()[0] as plain:
                plain.settimeout(_HEARD_S)
                with context.wrap_socket(plain, server_side=True) as line:
                    heard = line.recv(1)
            if not heard:
                until(lambda: "peer_login_failed" in broker.text, lambda: broker.text)
            return heard, broker.text
        finally:
            broker.kill()


# -- the way around the broker ---------------------------------------------------------------------


def straight_to_the_controller(target: SecuredTarget) -> str:
    """S34: each call that a broker forwards, in every version: answered alike at both listeners."""
    with _cluster(target) as (broker, controller):
        topic_id = _prepare(broker)
        differing = [
            f"{api.name} v{version} by {user}"
            for api in ROWS
            if api.is_forwardable and ListenerType.BROKER in api.listeners
            for version in range(api.versions[0], api.versions[1] + 1)
            for user in ("ann", "bob")
            if _answer(broker["INSIDE"], user, api, version, topic_id)
            != _answer(controller["CONTROLLER"], user, api, version, topic_id)
        ]
    return ", ".join(differing) or "alike"


@contextmanager
def _cluster(target: SecuredTarget) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Run a broker and a controller that both ask for logins; yield their addresses."""
    with _folder(target) as folder:
        settings = shared("SASL_PLAINTEXT", Authority(folder / "authority")) | {
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:broker;User:ANONYMOUS",
            "delegation.token.secret.key": SECRET,
        }
        controller, broker = members(folder, settings, settings)
        with controller, broker:
            yield broker.addresses, controller.addresses


def _prepare(broker: dict[str, str]) -> str:
    """Make a topic that `ann` may see, as she may see the cluster; return the topic's id."""
    with Line(host_and_port(broker["PLAINTEXT"])) as line:
        wanted = CreatableTopic(name=TOPIC_NAME, num_partitions=1, replication_factor=1)
        made = line.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
        entries = [
            entry(TOPIC, TOPIC_NAME, "ann", operation=_DESCRIBE),
            entry(CLUSTER, "kafka-cluster", "ann", operation=_DESCRIBE),
        ]
        assert outcome_of(line.ask(CreateAclsRequest(creations=entries), 3), 3) == "0"
    return uuid_to_text(made.topics[0].topic_id)


def _answer(address: str, user: str, api: Api, version: int, topic_id: str) -> Any:
    with Line(host_and_port(address)) as line:
        line.enters(user)
        answer = line.ask(request_of(api, version, topic_id), version)
    return "close" if answer is None else _lasting(message_to_json(answer, version))


def _lasting(shown: Any) -> Any:
    if isinstance(shown, list):
        return [_lasting(each) for each in shown]
    if isinstance(shown, dict):
        return {key: _lasting(value) for key, value in shown.items() if key not in _OF_ONE_TOKEN}
    return shown


@contextmanager
def _folder(target: SecuredTarget) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=target.log_path.parent) as folder:
        yield Path(folder)
