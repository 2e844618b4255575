"""OAUTHBEARER with real clients: Apache's node and ours, with the same settings, side by side.

librdkafka, Apache's tools and our own command log in to both. Tokens are signed by joserfc, and
once by the `openssl` program; the frames of a login are compared one by one.
"""

from __future__ import annotations

import json
import logging
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from tests.apache.secured_node import SecuredApache, SecuredNode
from tests.apache.test_sasl_on_the_wire import Conversation
from tests.apache.tools import run_tool
from tests.cluster_command import kraft_wire
from tests.node.security.tokens import EC, ED, RSA, key_set, message, plain_token, public, token
from tests.process import write_properties

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow]
OAUTH = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{OAUTH}.OAuthBearerLoginModule required"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
VALIDATOR = f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
ISSUER, AUDIENCE = "https://idp.example/", "kafka"
PATIENCE_S = 20
QUIET = logging.getLogger("tests.quiet")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

Nodes = tuple[SecuredApache, SecuredNode]


def started(directory: Path, settings: dict[str, str]) -> Iterator[Nodes]:
    own = {f"listener.name.secure.{key}": value for key, value in settings.items()}
    own["listener.name.secure.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    own |= {ALLOWED: settings.get("oauthbearer.sasl.oauthbearer.jwks.endpoint.url", "")}
    ours = SecuredNode(directory / "ours", "SASL_PLAINTEXT", own)
    ours.format()
    with SecuredApache(directory / "apache", "SASL_PLAINTEXT", own) as apache, ours:
        yield apache, ours


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key set of the nodes, with a key of the openssl program too."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    made = RSA.import_key(_openssl("genrsa", "2048", place=file.with_name("openssl.pem")))
    entries = [public(each) for each in (RSA, EC, ED)]
    file.write_bytes(key_set(*entries, {**made.as_dict(private=False), "kid": "openssl"}))
    return file


@pytest.fixture(scope="module")
def signed(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        url = f"file:{keys}"
        allowed = [url, *(f"file:{keys.with_name(name)}" for name in ("good", "late"))]
        patch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={','.join(allowed)}")
        settings = {
            "oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="x";',
            "oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
            "oauthbearer.sasl.oauthbearer.clock.skew.seconds": "600",
            "oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            "oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        yield from started(tmp_path_factory.mktemp("signed"), settings)


@pytest.fixture(scope="module")
def unsecured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    options = 'unsecuredLoginStringClaim_sub="node" unsecuredValidatorRequiredScope="write"'
    settings = {"oauthbearer.sasl.jaas.config": f"{MODULE} {options};"}
    yield from started(tmp_path_factory.mktemp("unsecured"), settings)


def claims(**changed: Any) -> dict[str, Any]:
    now = round(time.time())
    given = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600}
    return {**given, **changed}


def _openssl(*words: str, place: Path, data: bytes = b"") -> bytes:
    done = subprocess.run(
        ["openssl", *words[:-1], *(["-out", str(place)] if not data else []), words[-1]],
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout if data else place.read_bytes()


# -- confluent-kafka -------------------------------------------------------------------------------


def confluent(address: str, shown: Callable[[], str]) -> str:
    """Produce one record and read it back; return "read", or the name of the first error."""
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (shown(), time.time() + 600),
        "error_cb": errors.append,
        "logger": QUIET,
    }
    topic = f"confluent-{time.monotonic_ns()}"
    producer = Producer(settings)
    producer.produce(topic, b"value")
    deadline = time.monotonic() + PATIENCE_S
    while producer.flush(0.2) and not errors and time.monotonic() < deadline:
        pass
    if errors:
        return str(errors[0].name())
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        found = consumer.poll(PATIENCE_S)
        return "read" if found is not None and found.value() == b"value" else f"{found}"
    finally:
        consumer.close()


def by_openssl(keys: Path) -> str:
    """Return a token that the openssl program has signed."""
    part = plain_token(claims(), {"alg": "RS256", "kid": "openssl"})[:-1]
    place = keys.with_name("openssl.pem")
    signature = _openssl("dgst", "-sha256", "-sign", str(place), place=place, data=part.encode())
    return f"{part}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_librdkafka_logs_in_by_signed_tokens(signed: Nodes, keys: Path) -> None:
    """SEC-OAUTH-01, SEC-OAUTH-02, SEC-OAUTH-07: of each kind of key; openssl's too."""
    shown: list[Callable[[], str]] = [
        lambda: token(claims()),
        lambda: token(claims(), EC, "ES256", "ec"),
        lambda: token(claims(), ED, "EdDSA", "ed"),
        lambda: by_openssl(keys),
    ]
    for node in signed:
        for each in shown:
            assert confluent(node.secure, each) == "read", node


@pytest.mark.parametrize(
    "changed", [{"exp": 1_700_000_000, "iat": 1_600_000_000}, {"iss": "other"}, {"aud": "web"}]
)
def test_librdkafka_sees_the_same_failure(signed: Nodes, changed: dict[str, Any]) -> None:
    """SEC-OAUTH-03, SEC-OAUTH-11, SEC-OAUTH-12: the class of the error that its users know."""
    seen = [confluent(each.secure, lambda: token(claims(**changed))) for each in signed]
    assert seen[0] == seen[1] != "read"


# -- Apache's tools, and our own command -----------------------------------------------------------


def client_file(file: Path, options: str, token_file: Path | None = None) -> str:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE}{options};",
    }
    if token_file is not None:
        handler = f"{OAUTH}.OAuthBearerLoginCallbackHandler"
        settings["sasl.login.callback.handler.class"] = handler
        settings["sasl.oauthbearer.token.endpoint.url"] = f"file:{token_file}"
    write_properties(file, settings)
    return str(file)


def outcomes(nodes: Nodes, file: str) -> list[tuple[bool, bool]]:
    """Return, for each tool and node, whether it worked, and whether it was refused."""
    seen = []
    for node in nodes:
        place = ["--bootstrap-server", node.secure, "--command-config", file]
        done = run_tool("kafka-topics", [*place, "--list"])
        seen.append((done.exit_code == 0, "SaslAuthenticationException" in done.text))
        ours = kraft_wire("topics", "list", "-b", node.secure, "--command-config", file)
        seen.append((ours.returncode == 0, "invalid_token" in ours.stderr + ours.stdout))
    return seen


def test_tokens_of_a_file_work_and_fail_alike(signed: Nodes, keys: Path, tmp_path: Path) -> None:
    """SEC-OAUTH-02, SEC-OAUTH-03, SEC-OAUTH-07: both clients at both nodes."""
    for name, shown, expected in (
        ("good", token(claims()), (True, False)),
        ("late", token(claims(iss="other")), (False, True)),
    ):
        place = keys.with_name(name)
        place.write_text(f"{shown}\n")
        file = client_file(tmp_path / name, "", place)
        assert outcomes(signed, file) == [expected] * 4, name


def test_unsecured_tokens_work_where_they_are_asked_for(unsecured: Nodes, tmp_path: Path) -> None:
    """SEC-OAUTH-06: made by each client of its login entry's options."""
    options = ' unsecuredLoginStringClaim_sub="ann" unsecuredLoginListClaim_scope=",read,write"'
    file = client_file(tmp_path / "scoped", options)
    assert outcomes(unsecured, file) == [(True, False)] * 4
    file = client_file(tmp_path / "unscoped", ' unsecuredLoginStringClaim_sub="ann"')
    assert [worked for worked, _ in outcomes(unsecured, file)] == [False] * 4


def test_unsecured_tokens_are_refused_where_signed_ones_are_due(
    signed: Nodes, tmp_path: Path
) -> None:
    """SEC-OAUTH-09: alg none."""
    file = client_file(tmp_path / "none", ' unsecuredLoginStringClaim_sub="ann"')
    assert [worked for worked, _ in outcomes(signed, file)] == [False] * 4


# -- frame by frame --------------------------------------------------------------------------------


def talk(address: str, shown: Sequence[bytes], then: bool = True) -> list[object]:
    """Log in with these messages; return what came back, with lifetimes in whole minutes."""
    conversation = Conversation(address)
    software = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    conversation.asks(software, 3)
    conversation.asks(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    for number, each in enumerate(shown):
        request = SaslAuthenticateRequest(auth_bytes=each)
        header = RequestHeader(request.API_KEY, 2, number, "c")
        conversation.says(encode_request_header(header) + request.encode(2))
        frame = conversation.next_frame()
        if frame is not None:
            _, at = parse_response_header(frame, request.API_KEY, 2)
            found, _ = SaslAuthenticateResponse.decode(frame, 2, at)
            minutes = round(found.session_lifetime_ms / 60_000)
            conversation.heard.append(
                (found.error_code, found.error_message, bytes(found.auth_bytes), minutes)
            )
    if then:
        conversation.asks(MetadataRequest(topics=[]), 9)
    heard: list[object] = conversation.ends()
    return heard


def conversations() -> dict[str, list[bytes]]:
    good = token(claims())
    late = {"iat": round(time.time()) - 1000}
    return {
        "valid": [message(good)],
        "with extensions": [message(good, more="traceId=1\x01")],
        "as oneself": [message(good, "ann")],
        "as another": [message(good, "bob")],
        "refused": [message("a.b.c")],
        "refused and acknowledged": [message("a.b.c"), b"\x01"],
        "another issuer": [message(token(claims(iss="i"))), b"\x01"],
        "none": [message(plain_token(claims())), b"\x01"],
        "no message": [b"\x01"],
        "no auth": [b"n,,\x01a=b\x01\x01"],
        "no bytes": [b""],
        "ended within the skew": [message(token(claims(exp=round(time.time()) - 1, **late)))],
    }


@pytest.mark.parametrize("name", conversations())
def test_the_frames_of_a_login_are_apaches(signed: Nodes, name: str) -> None:
    """SEC-OAUTH-01, SEC-OAUTH-02, SEC-OAUTH-03, SEC-OAUTH-04, SEC-OAUTH-14: byte for byte."""
    shown = conversations()[name]
    seen = [talk(node.secure, shown, name != "refused") for node in signed]
    assert seen[0] == seen[1]
    assert len(seen[0]) > 2


def test_another_message_than_the_acknowledgement_is_refused(signed: Nodes) -> None:
    """SEC-OAUTH-03: where 4.3.1 lets the client in."""
    shown = [message("a.b.c"), message(token(claims()))]
    theirs, ours = (talk(node.secure, shown) for node in signed)
    assert theirs[-1] == "open"
    assert ours[-1] == "closed"
    assert json.loads('{"status":"invalid_token"}')["status"] in str(theirs[2])
