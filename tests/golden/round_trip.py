"""Bytes to our objects and back, without JSON between: unknown tagged fields must survive.

Only kinds whose bytes are exactly one message take part; frames and records have their own ways.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any, Protocol

from tests.golden.vectors import Vector

MESSAGE_KINDS = frozenset(
    {
        "request",
        "response",
        "request_header",
        "response_header",
        "metadata_record",
        "coordinator_record",
        "raft_record",
        "control_record",
        "consumer_protocol",
        "principal",
        "remote_log_record",
    }
)


class MessageClass(Protocol):
    """What a generated class offers here."""

    def decode(self, data: bytes, version: int) -> tuple[Any, int]:
        """The value and the offset behind it."""


def snake_case(name: str) -> str:
    """``KRaftVersionRecord`` is ``kraft_version_record``, the protocol's name staying one word."""
    whole = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", whole).lower()


@cache
def message_class(kind: str, name: str) -> MessageClass:
    """The generated class of a message, from the module that mirrors its schema."""
    stem = name
    if kind in ("request", "response"):
        stem = name.removesuffix("Request").removesuffix("Response")
    module = importlib.import_module(f"kraft_wire.wire.generated.{snake_case(stem)}")
    found: MessageClass = getattr(module, name)
    return found


def takes_part(vector: Vector) -> bool:
    """Whether the bytes of the vector are exactly one message."""
    return vector.kind in MESSAGE_KINDS


def round_trip_problem(vector: Vector) -> str | None:
    """None if our object gives the vector's bytes back."""
    assert takes_part(vector)
    data = bytes.fromhex(vector.hex)
    message, end = message_class(vector.kind, vector.name).decode(data, vector.version)
    if end != len(data):
        return f"decoding ended at {end} of {len(data)}"
    encoded: bytes = message.encode(vector.version)
    return None if encoded == data else f"objects gave {encoded.hex()[:160]}"
