"""Attacks before a login: frames, floods, TLS."""

from __future__ import annotations

import ssl
import struct
import time
from contextlib import ExitStack, suppress
from random import Random

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from tests.attack import frames
from tests.attack.secured.line import Line
from tests.attack.secured.target import SecuredTarget
from tests.certificates import Authority

BEGUN = 5_000
_ANNOUNCED_BYTES = 65_000
_HELLO = bytes.fromhex("160301020001000001fc0303") + bytes(20)
_LATEST = -1


def begun_frames(target: SecuredTarget) -> str:
    """S01: each announces as much as it may, sends nothing more, and is ended at the deadline."""
    return _half_open(target, "LOGIN", struct.pack(">i", _ANNOUNCED_BYTES))


def begun_handshakes(target: SecuredTarget) -> str:
    """S06: half a ClientHello each."""
    return _half_open(target, "SECURE", _HELLO)


def _half_open(target: SecuredTarget, listener: str, begin: bytes) -> str:
    """Hold connections open for two seconds, then look whether the node ends them."""
    lines = []
    with ExitStack() as stack:
        for _ in range(BEGUN):
            with suppress(OSError):
                lines.append(stack.enter_context(target.line(listener)))
                lines[-1].says(begin)
        time.sleep(2.0)
        target.note_memory()
        closed = sum(each.is_closed() for each in lines[:: BEGUN // 50])
    if len(lines) < BEGUN:
        return f"{len(lines)} connections"
    return "close" if closed == len(lines[:: BEGUN // 50]) else f"{closed} closed"


def bad_lengths(target: SecuredTarget) -> str:
    """S02: -1, 2^31-1, one more than is allowed, 0 and 2 bytes."""
    return _all_closed(
        target, *(struct.pack(">i", size) + b"xx" for size in (-1, (1 << 31) - 1, 524_289, 0, 2))
    )


def bad_counts(target: SecuredTarget) -> str:
    """S03: texts, bytes and tags of which there are not so many left."""
    name = frames.request(18, 3, b"\x01\x01\xff\xff\xff\xff\x07", flexible_header=True)
    mechanism = frames.request(17, 1, struct.pack(">h", 32_767))
    return _all_closed(target, name, mechanism, _begun_token(frames.request(36, 0, b"\x7f" * 4)))


def _begun_token(token: bytes) -> bytes:
    return frames.request(17, 1, frames.string("PLAIN")) + token


def _all_closed(target: SecuredTarget, *attempts: bytes) -> str:
    for attempt in attempts:
        with target.line() as line:
            line.says(attempt)
            if not line.is_closed():
                return "silence"
    return "close"


def other_speech(target: SecuredTarget) -> str:
    """S04: another API, HTTP, a GSSAPI token, noise."""
    gssapi = bytes.fromhex("6082020406092a864886f71201020201006e8201f3")
    noise = Random(4).randbytes(200)
    return _all_closed(
        target,
        frames.metadata_v1([]),
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        struct.pack(">i", len(gssapi)) + gssapi,
        struct.pack(">i", len(noise)) + noise,
    )


def pipelined_behind_a_failure(target: SecuredTarget) -> str:
    """S04: a record behind a login that fails is not written, nor answered."""
    before = _end(target)
    record = frames.batch(frames.one_record(b"smuggled"), 1)
    with target.line() as line:
        line.says(
            frames.request(17, 1, frames.string("PLAIN"))
            + line.frame(SaslAuthenticateRequest(auth_bytes=b"\0ann\0wrong"), 1)
            + frames.produce_v3("secret", record)
        )
        answers = 0
        while line.hears() is not None:
            answers += 1
    if _end(target) != before:
        return "written"
    return "close" if answers == 2 else f"{answers} answers"


def _end(target: SecuredTarget) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=_LATEST)
    topics = [ListOffsetsTopic(name="secret", partitions=[asked])]
    answer = target.as_super_user(ListOffsetsRequest(topics=topics), 6)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def versions_twice(target: SecuredTarget) -> str:
    """S05: the second good ApiVersions before a login closes."""
    with target.line() as line:
        first = line.ask(ApiVersionsRequest(), 0)
        second = line.ask(ApiVersionsRequest(), 0)
    return "close" if first is not None and second is None else "answer"


def versions_for_ever(target: SecuredTarget) -> str:
    """S05: unknown versions are answered until the deadline of the login."""
    answered = 0
    with target.line() as line:
        begun = time.monotonic()
        while time.monotonic() - begun < 15:
            line.says(frames.request(18, 50, b"\x01\x01\0", flexible_header=True))
            if line.hears() is None:
                break
            answered += 1
            time.sleep(0.05)
        else:
            return "answer"
    return "close" if answered > 10 else f"{answered} answers"


def drip(target: SecuredTarget) -> str:
    """S06: a login that comes a byte a second."""
    with target.line() as line:
        payload = line.frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        for position in range(len(payload)):
            line.says(payload[position : position + 1])
            if line.is_closed(1.0):
                return "close"
    return "silence"


def wrong_protocol(target: SecuredTarget) -> str:
    """S08: plain text to a port with TLS, TLS to one in plain text."""
    with target.line("SECURE") as line:
        line.says(frames.api_versions_v0())
        if not line.is_closed():
            return "silence"
    with target.line("LOGIN") as line:
        line.says(_HELLO)
        return "close" if line.is_closed() else "silence"


def foreign_mechanisms(target: SecuredTarget) -> str:
    """S13: one of another listener, and names that are not exact."""
    seen = set()
    for mechanism in ("SCRAM-SHA-256", "plain", "PLAIN ", ""):
        with target.line("NARROW") as line:
            seen.add(line.refused(mechanism))
            if not line.is_closed():
                return "open"
    return "+".join(sorted(seen))


# -- TLS -------------------------------------------------------------------------------------------


def tls_versions(target: SecuredTarget) -> str:
    """S07: old versions, and suites without encryption or authentication."""
    attempts = [_context(ssl.TLSVersion.TLSv1_1), _context(ssl.TLSVersion.TLSv1)]
    attempts += [_context(ssl.TLSVersion.TLSv1_2, each) for each in ("eNULL", "aNULL", "kRSA+RC4")]
    tried = [each for each in attempts if each is not None]
    return _none_answers(target, "SECURE", tried)


def _context(newest: ssl.TLSVersion, ciphers: str = "ALL") -> ssl.SSLContext | None:
    """Return a client of one version, None where this machine has no such suite."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    except ssl.SSLError:
        return None
    context.minimum_version = context.maximum_version = newest
    return context


def certificates(target: SecuredTarget) -> str:
    """S09: expired, of another authority, of its own."""
    authority = target.listeners.authority
    stranger = Authority(target.log_path.parent / f"stranger-{time.monotonic_ns()}")
    made = [
        authority.signed("late", is_expired=True),
        stranger.signed("ann"),
        stranger.signed("broker"),
    ]
    contexts = [target.trusting(certificate=str(m.chain), key=str(m.key)) for m in made]
    return _none_answers(target, "MUTUAL", [*contexts, target.trusting()])


def subjects(target: SecuredTarget) -> str:
    """S10, S11: names that look like a super user's, to a rule that takes whole names alone."""
    made = [
        target.listeners.authority.signed(f"odd-{number}", subject=subject)
        for number, subject in enumerate(
            (
                "/CN=a,CN=broker",
                "/O=x/CN=broker",
                "/CN=broker/OU=x",
                "/CN=broker+CN=x",
                "/CN=BROKER",
                "/CN=" + "b" * 64,
            )
        )
    ]
    contexts = [target.trusting(certificate=str(m.chain), key=str(m.key)) for m in made[:-1]]
    outcome = _none_answers(target, "MUTUAL", contexts)
    if outcome != "close":
        return outcome
    last = made[-1]
    context = target.trusting(certificate=str(last.chain), key=str(last.key))
    with target.line("MUTUAL", context) as line:  # no entry names this client
        answer = line.ask(MetadataRequest(topics=None), 12)
    return "close" if answer is not None and not answer.topics else "topics are shown"


def _none_answers(target: SecuredTarget, listener: str, contexts: list[ssl.SSLContext]) -> str:
    for number, context in enumerate(contexts):
        with suppress(ssl.SSLError, ConnectionError), target.line(listener, context) as line:
            if line.ask(ApiVersionsRequest(), 0) is not None:
                return f"attempt {number} is answered"
    return "close" if contexts else "nothing was tried"


def flood_of_one_listener(target: SecuredTarget) -> str:
    """S46: others still accept."""
    held: list[Line] = []
    with ExitStack() as stack:
        for _ in range(7_000):
            with suppress(OSError):
                held.append(stack.enter_context(target.line("LOGIN", host="127.0.0.2")))
        with target.logged_in("ann", "NARROW") as line:
            return "held" if line.ask(MetadataRequest(topics=[]), 12) else "close"


def forged_line(target: SecuredTarget) -> str:
    """S48: a user, a mechanism and a client id that would be lines of the log."""
    forged = "\n2026-01-01 00:00:00,000 INFO forged\x1b[31m"
    position = target.log_size()
    with target.line() as line:
        line.refused("PLAIN", f"\0{forged}\0wrong".encode())
    with target.line() as line:
        line.refused(forged)
    with target.line("PLAINTEXT") as line:
        line.ask(MetadataRequest(topics=[]), 12, client_id=forged)
        line.says(struct.pack(">i", 9) + b"\x7f\xff" * 4 + b"\0")
        line.is_closed()
    text = target.log_since(position)
    is_forged = any(each.endswith("INFO forged\x1b[31m") for each in text.splitlines())
    return "forged" if is_forged or "\x1b" in text else "escaped"
