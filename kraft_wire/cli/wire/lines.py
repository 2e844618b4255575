"""The line protocol of `kraft-wire wire decode` and `wire encode`: a question in, an answer out.

A question is a JSON object with kind, name, version and hex (decode) or json (encode). The answer
is one JSON line: `json` or `hex`, or `error` if the question cannot be decoded or encoded. No
question ends the process or exceeds its bounded memory.

`wire_pipe` moves the lines; this module answers one.
"""

import json
from collections.abc import Callable
from typing import Final, cast

from kraft_wire.foreign_text import json_value
from kraft_wire.wire.frames_json import (
    frame_findings,
    metadata_frame_from_json,
    metadata_frame_to_json,
    typed_key_from_json,
    typed_key_to_json,
    versioned_from_json,
    versioned_to_json,
)
from kraft_wire.wire.generated.registry import MESSAGES, message_class, message_table
from kraft_wire.wire.json_form import InvalidJson, Json, message_from_json, message_to_json
from kraft_wire.wire.message import DecodeLimits, MalformedMessage, UnencodableMessage
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records_json import records_from_json, records_to_json
from kraft_wire.wire.strict import message_findings, records_findings

__all__ = ["answer_decode", "answer_encode"]

LIMITS: Final = DecodeLimits(
    elements=500_000, tagged_fields=500_000, tagged_bytes=64 << 20, text_bytes=3 * 32_767
)
"""The verdict must be Apache's, so only memory is limited."""

_SCHEMA_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "coordinator_record": ("coordinator_key", "coordinator_value"),
    "version_prefixed": ("consumer_protocol", "principal"),
    "remote_log_record": ("remote_log_record", "storage_record"),
}
"""Kinds of questions whose schema files have kinds of other names."""


class BadQuestion(ValueError):
    """A line that is not a question: not JSON, or a part missing or of the wrong type."""


def answer_decode(line: bytes, *, strict: bool = False) -> bytes:
    """Return the answer line to a decode question, without line end."""
    return _answer(line, lambda question: _decode(question, strict))


def answer_encode(line: bytes) -> bytes:
    """Return the answer line to an encode question, without line end."""
    return _answer(line, _encode)


def _answer(line: bytes, respond: Callable[[dict[str, Json]], dict[str, Json]]) -> bytes:
    try:
        answer = respond(_question(line))
        return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii")
    except MalformedMessage as error:
        refusal: dict[str, Json] = {"error": str(error), "field": error.field, "offset": error.byte}
    except CorruptRecordBatch as error:
        refusal = {"error": str(error), "offset": error.position}
    except (UnencodableMessage, InvalidJson, BadQuestion) as error:
        refusal = {"error": str(error)}
    except RecursionError:
        refusal = {"error": "nested too deeply"}
    except MemoryError:
        refusal = {"error": "needs more memory than a response may have"}
    return json.dumps(refusal, separators=(",", ":")).encode("ascii")


def _question(line: bytes) -> dict[str, Json]:
    try:
        question = json_value(line, parse_constant=_refuse_constant)
    except ValueError as error:
        raise BadQuestion(f"not a JSON line: {error}") from error
    if not isinstance(question, dict):
        raise BadQuestion("not a JSON object")
    return cast("dict[str, Json]", question)


def _refuse_constant(constant: str) -> float:
    raise BadQuestion(f"not a JSON line: {constant}")


def _decode(question: dict[str, Json], strict: bool) -> dict[str, Json]:
    kind = _text(question, "kind")
    try:
        data = bytes.fromhex(_text(question, "hex"))
    except ValueError as error:
        raise BadQuestion(f"hex: {error}") from error
    if kind == "records":
        answer: dict[str, Json] = {"json": records_to_json(data)}
    elif kind == "metadata_frame":
        answer = {"json": metadata_frame_to_json(data, LIMITS)}
    else:
        answer = _decode_named(kind, _name(question, kind), question, data)
    if strict:
        answer["lenient"] = _findings(kind, question, data)
    return answer


def _decode_named(kind: str, name: str, question: dict[str, Json], data: bytes) -> dict[str, Json]:
    if kind == "coordinator_key":
        return {"json": typed_key_to_json(name, data, LIMITS)}
    if kind in ("coordinator_value", "version_prefixed"):
        return {"json": versioned_to_json(name, data, LIMITS)}
    version = _version(question)
    message, end = message_class(name).decode(data, version, 0, LIMITS)
    answer: dict[str, Json] = {"json": message_to_json(message, version)}
    if end < len(data):
        answer["remaining"] = len(data) - end
    return answer


def _encode(question: dict[str, Json]) -> dict[str, Json]:
    kind = _text(question, "kind")
    said = question.get("json")
    if kind == "records":
        data = records_from_json(said)
    elif kind == "metadata_frame":
        data = metadata_frame_from_json(said)
    else:
        data = _encode_named(kind, _name(question, kind), question, said)
    return {"hex": data.hex()}


def _encode_named(kind: str, name: str, question: dict[str, Json], said: Json) -> bytes:
    if kind == "coordinator_key":
        return typed_key_from_json(name, said)
    if kind in ("coordinator_value", "version_prefixed"):
        return versioned_from_json(name, said)
    version = _version(question)
    return message_from_json(message_table(name), said, version).encode(version)


def _text(question: dict[str, Json], part: str) -> str:
    text = question.get(part)
    if not isinstance(text, str):
        raise BadQuestion(f"{part!r} is missing or not a string")
    return text


def _version(question: dict[str, Json]) -> int:
    version = question.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise BadQuestion("'version' is missing or not an integer")
    return version


def _name(question: dict[str, Json], kind: str) -> str:
    """Return the message's name if it is one of that kind."""
    name = _text(question, "name")
    entry = MESSAGES.get(name)
    if entry is None or entry.kind not in _SCHEMA_KINDS.get(kind, (kind,)):
        raise BadQuestion(f"unknown {kind} {name!r}")
    return name


def _findings(kind: str, question: dict[str, Json], data: bytes) -> list[Json]:
    """Return the irregularities in decoded bytes that Apache accepts."""
    if kind == "records":
        found = list(records_findings(data))
    elif kind == "metadata_frame":
        found = frame_findings(data)
    elif kind in ("coordinator_key", "coordinator_value", "version_prefixed"):
        table = message_table(_name(question, kind))
        version = 0 if kind == "coordinator_key" else int.from_bytes(data[:2], "big")
        found = message_findings(table, data, version, 2)
    else:
        found = message_findings(message_table(_name(question, kind)), data, _version(question))
    return [{"field": each.field, "offset": each.byte, "what": each.what} for each in found]
