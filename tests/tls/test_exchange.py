"""Stores of a listener are exchanged while it listens: by IncrementalAlterConfigs alone.

Certificates are of `tests/certificates.py`; who serves which one shows OpenSSL's client.
"""

import os
import shutil
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_wire.keystores.store import Store
from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.disks.opening import StartError
from kraft_wire.tls.exchange import StoreExchange, check_own_trust
from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.header import parse_response_header
from tests.certificates import Authority, Certificate
from tests.keystores.java_stores import PASSWORD, pkcs12_of
from tests.tls.test_listeners import VERSIONS, TlsNode, ask, opened, trusting

BROKER = 4
DONE = ErrorCode.NONE, None
PREFIX = "listener.name.tls.ssl."


NODE = """\
process.roles=broker
node.id=1
controller.listener.names=CONTROLLER
listeners=TLS://:1
advertised.listeners=TLS://h:1
inter.broker.listener.name=TLS
listener.security.protocol.map=TLS:SSL,CONTROLLER:PLAINTEXT
controller.quorum.voters=2@h:2
log.dirs=/a
ssl.keystore.type=PEM
ssl.keystore.location={store}
ssl.truststore.type=PEM
ssl.truststore.location={trusted}
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def node(authority: Authority, tmp_path: Path) -> Iterator[TlsNode]:
    with TlsNode(tmp_path, authority) as node:
        yield node


def altered(node: TlsNode, *, name: str = "1", **values: str | None) -> tuple[int, str | None]:
    """Set or remove settings of a broker; the keys are `ssl.` ones, with underscores."""
    named = {PREFIX + key.replace("_", "."): text for key, text in values.items()}
    return altered_at(node.plain_port, name, named)


def altered_at(port: int, name: str, values: Mapping[str, str | None]) -> tuple[int, str | None]:
    """Set or remove settings of the broker with a name, at a listener in plain text."""
    configs = [
        AlterableConfig(name=key, config_operation=int(text is None), value=text)
        for key, text in values.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with opened(port) as sock:
        frame = ask(sock, request, 1)
    _, at = parse_response_header(frame, request.API_KEY, 1)
    answer, _ = IncrementalAlterConfigsResponse.decode(frame, 1, at)
    (first, *_) = answer.responses
    return first.error_code, first.error_message


def served(node: TlsNode, authority: Authority) -> str:
    """Return the serial number of the certificate that a new connection gets."""
    with opened(node.tls_port, trusting(authority)) as sock:
        assert isinstance(sock, ssl.SSLSocket)
        assert len(ask(sock, VERSIONS, 3)) > 100
        found = sock.getpeercert()
    assert found is not None
    return str(found["serialNumber"])


def serial(certificate: Certificate) -> str:
    decoded = ssl._ssl._test_decode_cert(str(certificate.chain))  # type: ignore[attr-defined]  # Python's own tests use it
    return str(decoded["serialNumber"])


def test_a_new_store_serves_new_connections_and_old_ones_go_on(
    node: TlsNode, authority: Authority
) -> None:
    """SEC-TLS-20: another file of the same subject; the open connection is not disturbed."""
    new = authority.signed("renewed", subject="/CN=server")
    with opened(node.tls_port, trusting(authority)) as old:
        assert len(ask(old, VERSIONS, 3)) > 100
        assert altered(node, keystore_location=str(new.store)) == DONE
        assert served(node, authority) == serial(new)
        assert len(ask(old, VERSIONS, 3)) > 100
    assert "stores_exchanged listener=TLS" in node.log.read_text()


def test_a_file_that_is_named_again_is_read_again_and_only_then(
    node: TlsNode, authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-20: files are not watched; the same value reads a changed file."""
    first = authority.signed("first", subject="/CN=server")
    second = authority.signed("second", subject="/CN=server")
    file = tmp_path / "own.pem"
    shutil.copy(first.store, file)
    assert altered(node, keystore_location=str(file)) == DONE
    assert served(node, authority) == serial(first)
    shutil.copy(second.store, tmp_path / "next.pem")
    os.replace(tmp_path / "next.pem", file)
    assert served(node, authority) == serial(first)
    assert altered(node, keystore_location=str(file)) == DONE
    assert served(node, authority) == serial(second)


def test_exchanged_stores_outlive_a_restart_and_removal_brings_the_file_back(
    node: TlsNode, authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-20: a PKCS12 store, with its type and password, in one change."""
    before = served(node, authority)
    new = authority.signed("kept", subject="/CN=server")
    store = pkcs12_of(tmp_path, new)
    keys = {"keystore_type": "PKCS12", "keystore_password": PASSWORD}
    code, _ = altered(node, keystore_location=str(store), **keys)
    assert code == ErrorCode.NONE
    node.stop()
    node.start()
    assert served(node, authority) == serial(new)
    removed = dict.fromkeys(("keystore_type", "keystore_password", "keystore_location"))
    assert altered(node, **removed) == DONE
    assert served(node, authority) == before
    assert PASSWORD not in node.log.read_text()


@pytest.mark.parametrize(
    ("subject", "hosts", "allowed", "words"),
    [
        (
            "/CN=other",
            "DNS:localhost,IP:127.0.0.1",
            "dn",
            "it was CN=server, and would be CN=other",
        ),
        ("/CN=server", "IP:127.0.0.1", "san", "lacks an alternative name of the present one"),
    ],
)
def test_another_subject_or_a_lost_name_is_refused_unless_allowed(
    authority: Authority, tmp_path: Path, subject: str, hosts: str, allowed: str, words: str
) -> None:
    """SEC-TLS-21: ssl.allow.dn.changes, ssl.allow.san.changes; nothing is recorded."""
    new = authority.signed(f"changed-{allowed}", subject=subject, hosts=hosts)
    with TlsNode(tmp_path, authority) as node:
        before = served(node, authority)
        code, message = altered(node, keystore_location=str(new.store))
        assert code == ErrorCode.INVALID_REQUEST
        assert words in str(message)
        assert served(node, authority) == before
        assert described(node) == {}
        node.overrides[f"listener.name.tls.ssl.allow.{allowed}.changes"] = "true"
        node.stop()
        node.start()
        assert altered(node, keystore_location=str(new.store)) == DONE
        assert served(node, authority) == serial(new)


def test_another_case_of_the_subject_and_more_names_are_taken(
    node: TlsNode, authority: Authority
) -> None:
    """SEC-TLS-21: names are compared without case, and may be added."""
    hosts = "DNS:localhost,IP:127.0.0.1,DNS:more"
    new = authority.signed("more", subject="/CN=SERVER", hosts=hosts)
    assert altered(node, keystore_location=str(new.store)) == DONE
    assert served(node, authority) == serial(new)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"keystore_location": "/nowhere.pem"}, "/nowhere.pem: No such file"),
        ({"keystore_location": "/dev/zero"}, "/dev/zero: it is not a file"),
        ({"keystore_type": "JKS"}, "a JKS or PKCS12 key store needs its password"),
        ({"keystore_password": "hunter2"}, "[hidden]: a PEM store has no password"),
        ({"truststore_location": "", "truststore_certificates": ""}, "cannot be added to a"),
        ({"keystore_type": "PKCS12", "keystore_password": "hunter2"}, "neither a JKS nor a PKCS12"),
    ],
)
def test_a_store_of_no_use_is_refused_and_recorded_nowhere(
    node: TlsNode, authority: Authority, values: dict[str, str | None], words: str
) -> None:
    """SEC-TLS-21, SEC-TLS-13: with INVALID_REQUEST and one line, without a password."""
    before = served(node, authority)
    code, message = altered(node, **values)
    assert code == ErrorCode.INVALID_REQUEST
    assert words in str(message)
    assert "hunter2" not in str(message)
    assert described(node) == {}
    assert served(node, authority) == before


def test_without_a_listener_or_a_broker_keys_of_stores_are_refused(node: TlsNode) -> None:
    """SEC-TLS-22: the prefix and the broker's id are needed."""
    for name in ("1", ""):
        code, message = altered_at(node.plain_port, name, {"ssl.keystore.location": "/x"})
        assert code == ErrorCode.INVALID_REQUEST
        assert "using the listener prefix: [ssl.keystore.location]" in str(message)
    code, message = altered(node, name="", keystore_location="/x")
    assert code == ErrorCode.INVALID_REQUEST
    assert "broker id must be specified" in str(message)


def test_other_resources_of_the_request_are_changed(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-21: each resource is refused on its own; every one has its answer."""
    bad = AlterableConfig(name=f"{PREFIX}keystore.location", value="/nowhere.pem")
    good = AlterableConfig(name="log.cleaner.threads", value="2")
    own = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[bad])
    rest = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[good])
    request = IncrementalAlterConfigsRequest(resources=[own, rest])
    with opened(node.plain_port) as sock:
        frame = ask(sock, request, 1)
    _, at = parse_response_header(frame, request.API_KEY, 1)
    answer, _ = IncrementalAlterConfigsResponse.decode(frame, 1, at)
    found = {each.resource_name: each.error_code for each in answer.responses}
    assert found == {"1": ErrorCode.INVALID_REQUEST, "": ErrorCode.NONE}


def test_without_the_right_nobody_learns_which_files_exist(
    authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-21, SEC-ENV-16: authorization comes first, and the right to alter decides."""
    node = TlsNode(tmp_path, authority)
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    node.overrides |= {"authorizer.class.name": standard, "super.users": "User:admin"}
    with node:
        code, _ = altered(node, keystore_location="/nowhere.pem")
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        node.overrides["super.users"] = "User:ANONYMOUS"
        node.stop()
        node.start()
        code, _ = altered(node, keystore_location="/nowhere.pem")
        assert code == ErrorCode.INVALID_REQUEST


def replaced(node: TlsNode, *values: tuple[str, str]) -> int:
    """Replace all settings of the broker, by AlterConfigs."""
    configs = [ReplacedConfig(name=name, value=text) for name, text in values]
    resource = ReplacedResource(resource_type=BROKER, resource_name="1", configs=configs)
    request = AlterConfigsRequest(resources=[resource])
    with opened(node.plain_port) as sock:
        frame = ask(sock, request, 2)
    _, at = parse_response_header(frame, request.API_KEY, 2)
    answer, _ = AlterConfigsResponse.decode(frame, 2, at)
    return answer.responses[0].error_code


def test_the_older_request_is_checked_too(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-21: AlterConfigs, which replaces all values, also with none."""
    before = served(node, authority)
    location = f"{PREFIX}keystore.location"
    assert replaced(node, (location, "/nowhere.pem")) == ErrorCode.INVALID_REQUEST
    assert served(node, authority) == before
    names = "DNS:localhost,IP:127.0.0.1,DNS:more"
    new = authority.signed("wider", subject="/CN=server", hosts=names)
    assert replaced(node, (location, str(new.store))) == ErrorCode.NONE
    assert served(node, authority) == serial(new)
    assert replaced(node) == ErrorCode.INVALID_REQUEST, "the file's store lacks a name"
    assert served(node, authority) == serial(new)


def described(node: TlsNode) -> dict[str, str | None]:
    """Return the values of stores that the broker has recorded."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1")
    request = DescribeConfigsRequest(resources=[resource])
    with opened(node.plain_port) as sock:
        frame = ask(sock, request, 4)
    _, at = parse_response_header(frame, request.API_KEY, 4)
    answer, _ = DescribeConfigsResponse.decode(frame, 4, at)
    own = 1
    return {
        each.name: each.value
        for each in answer.results[0].configs
        if each.name.startswith(PREFIX) and each.config_source == own
    }


@pytest.mark.parametrize("is_trusted", [True, False])
def test_stores_of_the_listener_between_brokers_must_trust_each_other(
    authority: Authority, tmp_path: Path, is_trusted: bool
) -> None:
    """SEC-TLS-23: at the start, and when they are exchanged."""
    stranger = Authority(tmp_path / "stranger", "stranger")
    node = TlsNode(tmp_path, authority)
    node.overrides["inter.broker.listener.name"] = "TLS"
    if not is_trusted:
        node.overrides["ssl.truststore.location"] = str(stranger.trusted)
        with pytest.raises(AssertionError):
            node.start()
        assert "its key store is not trusted by its own trust store" in node.log.read_text()
        return
    with node:
        before = served(node, authority)
        foreign = stranger.signed("foreign", subject="/CN=server")
        code, message = altered(node, keystore_location=str(foreign.store))
        assert code == ErrorCode.INVALID_REQUEST
        assert "its key store is not trusted by its own trust store" in str(message)
        new = authority.signed("between", subject="/CN=server")
        assert altered(node, keystore_location=str(new.store)) == DONE
        assert served(node, authority) == serial(new) != before


def test_links_use_the_exchanged_stores_too(authority: Authority) -> None:
    """SEC-TLS-20: connections that this node opens later; a failed exchange keeps the present."""
    store = authority.signed("linked", subject="/CN=server").store
    text = NODE.format(store=store, trusted=authority.trusted)
    config = load_config(settings_of_file(text, "server.properties"), {})
    tls = config.security["TLS"].tls
    assert tls is not None
    served: list[TlsSettings] = []
    dialled: dict[str, ssl.SSLContext] = {}
    exchange = StoreExchange(config, lambda _, each: served.append(each), dialled)
    assert exchange.exchange("TLS", tls, is_start=False) is None
    assert ([*dialled], served) == (["TLS"], [tls])
    kept = dialled["TLS"]
    nowhere = replace(tls, key_store=Store("/nowhere.pem"))
    assert "No such file" in str(exchange.exchange("TLS", nowhere, is_start=True))
    bare = replace(tls, key_store=Store(str(authority.signed("linked").key)))
    assert exchange.exchange("TLS", bare, is_start=True) == "the key store has no certificate"
    assert (dialled["TLS"], served) == (kept, [tls])


def test_without_a_trust_store_the_platforms_authorities_are_trusted(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-TLS-12: those of OpenSSL's default file, on both sides of a handshake."""
    text = NODE.format(store=authority.signed("default").store, trusted="")
    config = load_config(settings_of_file(text, "server.properties"), {})
    tls = config.security["TLS"].tls
    assert tls is not None
    assert tls.trust_store is None
    tls = replace(tls, client_auth="required")
    with pytest.raises(StartError, match="not trusted by its own trust store"):
        check_own_trust(tls, "TLS")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.trusted))
    check_own_trust(tls, "TLS")
