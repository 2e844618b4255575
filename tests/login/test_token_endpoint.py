"""Tokens of an identity provider are asked for as Apache's clients ask, and answers taken alike.

A provider of the tests answers; the judge is 4.3.1's `DefaultJwtRetriever`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.login import token_endpoint
from kraft_wire.login.client_config import UnusableConfig, security_of
from tests.apache.source_judge import answers_of
from tests.certificates import Authority

HERE = Path(__file__).parent
RECORDED = HERE / "observed" / "4.3.1.json"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
CLIENT = "sasl.oauthbearer.client.credentials.client"
ASKED = ("Accept", "Authorization", "Cache-Control", "Content-Type")
QUICK = {"sasl.login.retry.backoff.ms": "1", "sasl.login.retry.backoff.max.ms": "400"}
ENCODED = {"sasl.oauthbearer.header.urlencode": "true"}
KNOWN = {f"{CLIENT}.id": "ann", f"{CLIENT}.secret": "secret of ann"}


class Provider(BaseHTTPRequestHandler):
    """Notes each request, and gives the next answer of a list, the last one again and again."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(([self.headers[name] for name in ASKED], body))  # type: ignore[attr-defined]  # set by `providing`
        answers: list[tuple[int, bytes]] = self.server.answers  # type: ignore[attr-defined]  # set by `providing`
        status, data = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


Asked = list[tuple[list[str], bytes]]


@contextmanager
def providing(
    *answers: tuple[int, bytes], context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, Asked]]:
    """Yield the address of a provider, and the requests that it has got."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.daemon_threads = True
        asked: Asked = []
        server.asked, server.answers = asked, list(answers)  # type: ignore[attr-defined]  # read by `Provider`
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=partial(server.serve_forever, 0.01), daemon=True).start()
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}/token", asked
        server.shutdown()


def given(token: object) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token}).encode()


def client_keys(
    url: str, keys: Mapping[str, str], options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Keys of a client whose login entry has these options."""
    text = " ".join(f'{name}="{value}"' for name, value in (options or {}).items())
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required {text};",
        "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
        **keys,
    }


def token_of(url: str, keys: Mapping[str, str], options: Mapping[str, str] | None = None) -> str:
    credentials = security_of(client_keys(url, keys, options)).credentials
    assert credentials is not None
    assert credentials.token is not None
    return credentials.token()


def ours(url: str, keys: Mapping[str, str], options: Mapping[str, str]) -> str:
    """Return the answer in the judge's words."""
    try:
        return f"token {token_of(url, keys, options)}"
    except (UnusableConfig, ValueError, OSError):
        return "failed"


def apaches(clients: list[tuple[str, dict[str, str], dict[str, str]]]) -> list[str]:
    """Return the judge's answers to clients: address, keys, options of the login entry."""
    lines = []
    for url, keys, options in clients:
        pairs = [*keys.items(), *((f":{name}", value) for name, value in options.items())]
        lines.append("\t".join([url, *(f"{name}={value}" for name, value in pairs)]))
    return answers_of(HERE / "RetrieverJudge.java", lines).splitlines()


CLIENTS: list[tuple[dict[str, str], dict[str, str]]] = [
    (KNOWN, {}),
    ({**KNOWN, "sasl.oauthbearer.scope": "read write"}, {}),
    (
        {**KNOWN, "sasl.oauthbearer.scope": " a&b=c ", "sasl.oauthbearer.header.urlencode": "true"},
        {},
    ),
    ({**ENCODED, f"{CLIENT}.id": "a:b/ü", f"{CLIENT}.secret": "100%+~*-_.é"}, {}),
    ({f"{CLIENT}.id": "ünïcode", f"{CLIENT}.secret": "päss"}, {}),
    ({}, {"clientId": " bob ", "clientSecret": "of bob", "scope": "x"}),
    (KNOWN, {"clientId": "bob", "clientSecret": "of bob", "scope": "x"}),
    ({f"{CLIENT}.id": "ann"}, {"clientSecret": "of the entry"}),
    ({f"{CLIENT}.id": "ann"}, {}),
    ({}, {"clientId": "bob"}),
]


def apaches_requests() -> tuple[Asked, list[str]]:
    """Return what Apache's client asks the provider for, and what it tells its user."""
    with providing(given("a.b.c")) as (url, asked):
        theirs = apaches([(url, *each) for each in CLIENTS])
        return list(asked), theirs


def our_requests() -> tuple[Asked, list[str]]:
    with providing(given("a.b.c")) as (url, asked):
        found = [ours(url, *each) for each in CLIENTS]
        return list(asked), found


def test_requests_are_those_that_apaches_client_sent() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    asked, found = our_requests()
    assert found == recorded["tokens"]
    assert [[headers, body.decode()] for headers, body in asked] == recorded["requests"]


@pytest.mark.java
def test_requests_are_those_of_apaches_client() -> None:
    of_apache, theirs = apaches_requests()
    assert our_requests() == (of_apache, theirs)
    assert len(of_apache) == len(CLIENTS) - 2


ANSWERS = [
    [(201, b'{"access_token": " a.b.c "}')],
    [(200, b'{"id_token": "a.b.c"}')],
    [(200, b'{"id_token": "i.d.t", "access_token": "a.b.c"}')],
    [(200, b'{"access_token": "  ", "id_token": "i.d.t"}')],
    [(200, b'{"access_token": 5}')],
    [(200, b"{}")],
    [(200, b"not JSON")],
    [(200, b"[]")],
    [(503, b""), given("a.b.c")],
    [(429, b""), (500, b"?"), given("a.b.c")],
    *([(status, b'{"error": "x"}'), given("a.b.c")] for status in (400, 401, 403, 404, 405, 409)),
    *([(status, b""), given("a.b.c")] for status in (408, 415, 416, 418, 501, 502, 504, 505)),
]


def our_answers() -> list[list[object]]:
    """Return for each list of answers what the user is told, and how often it was asked."""
    found: list[list[object]] = []
    for answers in ANSWERS:
        with providing(*answers) as (url, asked):
            found.append([ours(url, {**KNOWN, **QUICK}, {}), len(asked)])
    return found


def apaches_answers() -> list[list[object]]:
    with ExitStack() as stack:
        providers = [stack.enter_context(providing(*answers)) for answers in ANSWERS]
        theirs = apaches([(url, {**KNOWN, **QUICK}, {}) for url, _ in providers])
        counts = [len(asked) for _, asked in providers]
    return [list(each) for each in zip(theirs, counts, strict=True)]


def test_answers_are_taken_as_apaches_client_took_them() -> None:
    """Which are final, which are asked for again, and where the token stands."""
    assert our_answers() == json.loads(RECORDED.read_text(encoding="utf-8"))["answers"]


@pytest.mark.java
def test_answers_are_taken_as_by_apaches_client() -> None:
    """Which are final, which are asked for again, and where the token stands."""
    assert our_answers() == apaches_answers()


def test_pauses_double_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 4.3.1's `Retry`: 100 ms, then twice as long each time, 10 seconds in all."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        assert len(pauses) < 20, "twice as long each time"

    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=sleep)
    monkeypatch.setattr(token_endpoint, "time", clock)
    for keys, first in (({}, 0.1), ({"sasl.login.retry.backoff.ms": "0"}, 0.001)):
        pauses.clear()
        with providing((503, b"")) as (url, asked), pytest.raises(OSError, match="503"):
            token_of(url, {**KNOWN, **keys})
        assert pauses == [first * 2**number for number in range(len(pauses))]
        assert sum(pauses) < 10 <= sum(pauses) + 2 * pauses[-1], "one more would be too late"
        assert len(asked) == len(pauses) + 1


def test_a_provider_that_is_silent_is_given_up_at_the_end_of_the_time() -> None:
    with providing((503, b"")) as (url, asked):
        with pytest.raises(OSError, match=r"^the token endpoint answers with status 503$"):
            token_of(url, {**KNOWN, **QUICK})
        assert len(asked) > 2


def test_a_refusal_has_the_providers_reason_and_no_secret() -> None:
    answer = {"error": "invalid_client", "error_description": "unknown\nclient"}
    with providing((401, json.dumps(answer).encode())) as (url, _):
        with pytest.raises(ValueError, match=r"401: invalid_client - unknown\?client$") as refusal:
            token_of(url, KNOWN)
        assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "body", [b"[1]", b'"error"', b"7", pytest.param(b"[" * 100_000, id="deep")]
)
@pytest.mark.parametrize(("status", "words"), [(401, "with status 401"), (200, "has no token")])
def test_an_answer_that_is_no_object_says_nothing(body: bytes, status: int, words: str) -> None:
    with providing((status, body)) as (url, _), pytest.raises(ValueError, match=f"{words}$"):
        token_of(url, KNOWN)


def test_what_is_no_token_is_not_shown_to_a_broker() -> None:
    """A line break would end the message of the login early (RFC 7628)."""
    answer = given("a.b.c\u0001host=x")
    with providing(answer) as (url, _), pytest.raises(ValueError, match="not a token"):
        token_of(url, KNOWN)


def test_an_address_of_https_is_trusted_by_the_entrys_store(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.signed("idp").store)
    store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.trusted)}
    with providing(given("a.b.c"), context=context) as (url, asked):
        assert token_of(url, KNOWN, store) == "a.b.c"
        with pytest.raises(OSError, match="certificate verify failed"):
            token_of(url, {**KNOWN, **QUICK})
        assert len(asked) == 1
        with pytest.raises(UnusableConfig, match=r"^a store cannot be used: /nowhere"):
            token_of(url, KNOWN, {**store, "ssl.truststore.location": "/nowhere"})


@pytest.mark.parametrize(
    ("url", "keys", "words"),
    [
        ("ftp://idp/token", KNOWN, "must be an address of file, http or https"),
        ("https:///token", KNOWN, "must be an address of file, http or https"),
        ("http://idp/token", {}, f"{CLIENT}.id is missing"),
        (
            "http://idp/token",
            {**KNOWN, "sasl.login.retry.backoff.ms": "soon"},
            "sasl.login.retry.backoff.ms and sasl.login.retry.backoff.max.ms are numbers",
        ),
        (
            "http://idp/token",
            {**KNOWN, "sasl.login.retry.backoff.max.ms": "9" * 400},
            "sasl.login.retry.backoff.ms and sasl.login.retry.backoff.max.ms are numbers",
        ),
    ],
)
def test_settings_without_a_client_are_refused(url: str, keys: dict[str, str], words: str) -> None:
    with pytest.raises(UnusableConfig, match=words):
        security_of(client_keys(url, keys))
