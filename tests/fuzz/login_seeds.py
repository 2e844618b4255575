"""Where the fuzzer of a login starts from: stores, tokens and whole exchanges.

Stores are keytool's, tokens joserfc's, the messages of SCRAM those of our client and our server.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import log_in
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import Message
from tests.fuzz.login_targets import NONCE, PASSWORD, PUBLIC, SCRAM, USER, scram_server
from tests.keystores.recorded import CERTIFICATE, written
from tests.node.security import tokens

__all__ = ["LOGIN_SEEDS"]

_CLAIMS = {"sub": USER, "iat": 0, "exp": 60, "aud": ["x"], "scope": ["a"]}
_BY_PLAIN = f"\0{USER}\0{PASSWORD}".encode()
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def _stores() -> Iterator[bytes]:
    """Yield stores without their digests."""
    with TemporaryDirectory() as directory:
        for name in ("identity.jks", "trust.jks", "two.jks"):
            yield written(Path(directory), name).read_bytes()[:-20]


def _certificates() -> Iterator[bytes]:
    yield b64decode("".join(CERTIFICATE.splitlines()[1:-1]))


def _key_sets() -> Iterator[bytes]:
    yield PUBLIC
    yield tokens.key_set()


def _bearers() -> Iterator[bytes]:
    yield tokens.message(tokens.plain_token(_CLAIMS), USER, "a=b\x01")
    signers = (tokens.RSA, "RS256"), (tokens.EC, "ES256"), (tokens.ED, "EdDSA")
    for key, algorithm in signers:
        yield tokens.message(tokens.token(_CLAIMS, key, algorithm, None))


def _token_answers() -> Iterator[bytes]:
    token = tokens.token(_CLAIMS)
    yield f'{{"access_token":"{token}","token_type":"Bearer","expires_in":60}}'.encode()
    yield b'{"error":"invalid_client","error_description":"unknown"}'
    yield token.encode()


def _plain_messages() -> Iterator[bytes]:
    yield _BY_PLAIN
    yield USER.encode() + _BY_PLAIN


def _exchange() -> tuple[list[bytes], list[bytes]]:
    """Return the messages of a client, and those of the server."""
    server, told, heard = scram_server(), [], []

    def send(token: bytes) -> bytes:
        told.append(token)
        heard.append(server.step(token, 0))
        return heard[-1]

    log_in(Credentials(SCRAM, USER, PASSWORD), send, NONCE)
    assert server.user == USER
    return told, heard


def _scram_messages() -> Iterator[bytes]:
    yield b"\0".join(_exchange()[0])
    yield f"n,a={USER},m=x,n={USER},r={NONCE},tokenauth=true".encode()


def _scram_answers() -> Iterator[bytes]:
    yield b"\0".join(_exchange()[1])


def _logins() -> Iterator[bytes]:
    """Yield whole connections: every mechanism, with headers and without, and one login more."""
    hello = _framed(ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3)
    by_scram = _exchange()[0]
    for version, mechanism, told in (
        (1, "PLAIN", [_BY_PLAIN]),
        (1, SCRAM, by_scram),
        (0, "PLAIN", [_BY_PLAIN]),
        (0, SCRAM, by_scram),
        (1, "OTHER", []),
    ):
        shake = _framed(SaslHandshakeRequest(mechanism=mechanism), version)
        shown = b"".join(_token(each, version) for each in told)
        yield hello + shake + shown + hello + shake + shown
        yield shake + shown + _framed(MetadataRequest(topics=[]), 12)
    yield _framed(MetadataRequest(topics=[]), 12)


def _token(token: bytes, version: int) -> bytes:
    if version == 0:
        return _sized(token)
    return _framed(SaslAuthenticateRequest(auth_bytes=token), 2)


def _framed(request: Message, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 1, "c")
    return _sized(encode_request_header(header) + request.encode(version))


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _entries() -> Iterator[bytes]:
    yield f'{_MODULE} required username="{USER}" password="{PASSWORD}" user_bob=\'b"\';'.encode()
    yield f'/* a */ {_MODULE} optional // b\n a=b c="\\t\\101\\\\";'.encode()


def _rules() -> Iterator[bytes]:
    documented = [
        r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        r"RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L",
        r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1\/\$/U",
        "DEFAULT",
    ]
    yield ",".join(documented).encode()
    for pair in pairwise(documented):
        yield " , ".join(pair).encode()
    yield b"CN=ann,OU=ServiceUsers,O=Org,C=NL"


LOGIN_SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "jks": _stores,
    "certificate": _certificates,
    "bearer": _bearers,
    "key_set": _key_sets,
    "token_answer": _token_answers,
    "plain": _plain_messages,
    "scram": _scram_messages,
    "scram_client": _scram_answers,
    "login": _logins,
    "jaas": _entries,
    "principal_rules": _rules,
}
"""What yields the seeds of each target of `login_targets`."""
