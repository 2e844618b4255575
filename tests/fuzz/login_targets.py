"""Fuzz targets of what is read before anybody has logged in, and of what names a login.

Stores, certificates, tokens and key sets; the messages of PLAIN and SCRAM on both sides; the frames
of a login; the grammar of `sasl.jaas.config` and of `ssl.principal.mapping.rules`. Beside the rules
of `targets`: a login needs the secret, and gives the name of its owner.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.keystores.bounded_http import HttpAnswer
from kraft_wire.keystores.jks import jks_identity, jks_trusted
from kraft_wire.keystores.key_sets import UnusableKeySet
from kraft_wire.keystores.store import UnusableStore
from kraft_wire.login.client_config import Credentials
from kraft_wire.login.jaas import InvalidJaas, LoginEntry, parse_jaas
from kraft_wire.login.sasl import LoginFailed, dialogue
from kraft_wire.login.token_endpoint import refusal_of, token_in
from kraft_wire.login.token_refresh import times_of
from kraft_wire.node.config.token_settings import SignedTokenSettings, UnsecuredTokenSettings
from kraft_wire.node.outputs import Close, LoggedIn, Output, Peer, RefuseLogin, Reply
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security.login import Login, LoginRules
from kraft_wire.node.security.mechanisms import LoginRefused, Mechanism
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.server import OAuthBearerServer
from kraft_wire.node.security.oauth.signatures import (
    KIND_OF_ALGORITHM,
    is_signed_by,
    read_key_set,
)
from kraft_wire.node.security.oauth.signed import SignedTokens
from kraft_wire.node.security.oauth.unsecured import UnsecuredTokens
from kraft_wire.node.security.plain import PlainServer
from kraft_wire.node.security.principal_rules import (
    InvalidPrincipalRule,
    PrincipalRules,
    parse_principal_rules,
)
from kraft_wire.node.security.scram import ScramServer, derived_credential
from kraft_wire.node.security.subject_name import (
    MalformedCertificate,
    alternative_names,
    subject_name,
)
from kraft_wire.wire.message import DecodeLimits

__all__ = ["LOGIN_TARGETS", "NONCE", "PASSWORD", "PUBLIC", "SCRAM", "USER", "scram_server"]

USER: Final = "ann"
PASSWORD: Final = "secret of ann"
SCRAM: Final = "SCRAM-SHA-256"
NONCE: Final = "fyko+d2lbbFgONRvqkxdawL"
PUBLIC: Final = (
    b'{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
)
"""The key of RFC 8037, appendix A.2."""
_SECRET: Final = b"the node's own"
_CREDENTIAL: Final = derived_credential(SCRAM, USER, PASSWORD, _SECRET)
_RENEWAL_MS: Final = 2_000


def _signed_tokens() -> SignedTokens:
    settings = SignedTokenSettings("https://h/")
    keys = KeySet(settings, "L")
    keys.arrived(read_key_set(PUBLIC), 0)
    return SignedTokens(settings, keys)


_SIGNED: Final = _signed_tokens()


# -- stores and tokens -----------------------------------------------------------------------------


def jks(data: bytes) -> None:
    """A JKS store is read, or refused with the declared error; its digest is made right first."""
    secret = "p".encode("utf-16-be")
    whole = data + hashlib.sha1(secret + b"Mighty Aphrodite" + data).digest()
    for store in (data, whole):
        with suppress(UnusableStore):
            jks_trusted(store, None)
        with suppress(UnusableStore):
            jks_identity(store, "p", "p")


def certificate(data: bytes) -> None:
    """Names of a certificate are read, or refused with the declared error."""
    for read in (subject_name, alternative_names):
        with suppress(MalformedCertificate):
            read(data)


def bearer(data: bytes) -> None:
    """A first message of OAUTHBEARER, with a signed or an unsecured token."""
    for tokens in (UnsecuredTokens(UnsecuredTokenSettings()), _SIGNED):
        server = OAuthBearerServer(tokens)
        try:
            challenge = server.step(data, 0)
        except LoginRefused:
            assert server.user is None
        else:
            assert (challenge == b"") == bool(server.user), (challenge, server.user)
            assert tokens is not _SIGNED or challenge, "only the owner of the key can sign"


def key_set(data: bytes) -> None:
    """A key set, whose keys are then asked for a signature."""
    with suppress(UnusableKeySet):
        for each in read_key_set(data):
            assert each.kind in KIND_OF_ALGORITHM.values(), each
            for algorithm, kind in KIND_OF_ALGORITHM.items():
                if kind == each.kind:
                    assert not is_signed_by(algorithm, b"signed", data[:256], [each])


def token_answer(data: bytes) -> None:
    """What a token endpoint answers, and the life of the token that it gives."""
    with suppress(ValueError):
        assert token_in(data).strip()
    assert refusal_of(HttpAnswer(401, data)).isprintable()
    with suppress(ValueError):
        times_of(data.decode("latin-1"))


# -- mechanisms ------------------------------------------------------------------------------------


class _SameNumber:
    """A source of numbers that makes the server's part of a nonce known."""

    def below(self, bound: int) -> int:
        """Return the greatest number below the bound."""
        return bound - 1


def scram_server() -> ScramServer:
    """Return a login that knows one user, and answers the same messages alike."""
    return ScramServer(SCRAM, {USER: _CREDENTIAL}.get, _SameNumber(), _SECRET)


def plain(data: bytes) -> None:
    """A message of PLAIN lets in the one user, by the one message that has the password."""
    server = PlainServer({USER: PASSWORD})
    try:
        answer = server.step(data, 0)
    except LoginRefused:
        assert server.user is None
    else:
        assert answer == b""
        assert server.user == USER
        assert data.removeprefix(USER.encode()) == f"\0{USER}\0{PASSWORD}".encode()


def scram(data: bytes) -> None:
    """Both messages of a SCRAM client, with a NUL between them."""
    server = scram_server()
    first, _, final = data.partition(b"\0")
    with suppress(LoginRefused):
        assert server.step(first, 0).startswith(b"r=")
        assert server.user is None, "the first message proves nothing"
        assert server.step(final, 0).startswith(b"v=")
    assert server.user in (None, USER)
    assert server.user is None or b"n=ann" in first


def scram_client(data: bytes) -> None:
    """Both messages of a SCRAM server, with a NUL between them; it must know the password."""
    credentials = Credentials(SCRAM, USER, PASSWORD)
    client = dialogue(credentials, NONCE)
    next(client)
    first, _, final = data.partition(b"\0")
    with suppress(LoginFailed):
        client.send(first)
        with suppress(StopIteration):
            client.send(final)
            raise AssertionError("a client has two messages")


# -- the frames of a login -------------------------------------------------------------------------


def _mechanism(name: str) -> Mechanism:
    return PlainServer({USER: PASSWORD}) if name == "PLAIN" else scram_server()


_RULES: Final = LoginRules(
    ("PLAIN", SCRAM),
    _mechanism,
    RequestDecoder(served(ListenerType.BROKER), DecodeLimits()),
    lambda _: 10_000,
    100,
)
_FRAME_BYTES_MIN: Final = 8


def login(data: bytes) -> None:
    """Frames of one connection, each behind its length in two bytes; nothing follows an end."""
    peer = Peer(1, "h", 2, "L")
    peer.login = gate = Login(_RULES, peer)
    position = now_ms = 0
    while position + 2 <= len(data):
        end = position + 2 + int.from_bytes(data[position : position + 2], "big")
        frame = bytearray(data[position + 2 : end])
        position, now_ms = end, now_ms + _RENEWAL_MS
        if gate.is_over and len(frame) < _FRAME_BYTES_MIN:
            return  # the server cuts no such frame then
        outputs = gate.take(frame, now_ms, now_ms)
        if not _goes_on(outputs, peer, gate):
            return


def _goes_on(outputs: list[Output] | None, peer: Peer, gate: Login) -> bool:
    """Check the outputs of a frame; whether another one may follow."""
    assert (peer.principal.name == USER) == gate.is_over, peer
    if outputs is None:
        return True
    kinds = [type(each) for each in outputs]
    assert kinds in ([Reply], [Reply, LoggedIn], [Close], [RefuseLogin]), kinds
    return kinds[0] is Reply


# -- settings --------------------------------------------------------------------------------------


def jaas(data: bytes) -> None:
    """A login entry; written with quotes around everything it is read again as the same."""
    with suppress(InvalidJaas):
        found = parse_jaas(data.decode("utf-8", "replace"))
        assert parse_jaas(_written(found)) == found


def _written(entry: LoginEntry) -> str:
    words = [_quoted(entry.module), "required"]
    words += [f"{_quoted(key)}={_quoted(value)}" for key, value in entry.options.items()]
    return " ".join(words) + ";"


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\{ord(c):03o}" if ord(c) < 0x100 else c for c in text) + '"'


_DOCUMENTED: Final = parse_principal_rules(
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT"
)
"""The rules of Kafka's documentation."""


def principal_rules(data: bytes) -> None:
    """A list of rules, and a name for those that are documented."""
    text = data.decode("utf-8", "replace")
    with suppress(InvalidPrincipalRule):
        assert isinstance(parse_principal_rules(text), PrincipalRules)
    assert _DOCUMENTED.name_of(text[:200]) is not None, "DEFAULT matches every name"


LOGIN_TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "jks": jks,
    "certificate": certificate,
    "bearer": bearer,
    "key_set": key_set,
    "token_answer": token_answer,
    "plain": plain,
    "scram": scram,
    "scram_client": scram_client,
    "login": login,
    "jaas": jaas,
    "principal_rules": principal_rules,
}
