"""The output of `kraft-wire wire hexdump` and `wire schema`, as tables for people and as JSON."""

import json
from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from kraft_wire.cli.tables import new_table
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.wire.dissect import Dissection, Piece
from kraft_wire.wire.schema import OPEN_END, FieldTable, MessageTable, Range, StructTable, includes

__all__ = ["dissection_json", "dissection_table", "schema_json", "schema_table"]

_HEX_BYTES: Final = 16
_BLOB_BYTES_SHOWN: Final = 64
_TEXT_SHOWN: Final = 96


def dissection_table(found: Dissection, data: bytes) -> Table:
    """Return a table: first byte, bytes in hex, field path, value; the break in red."""
    table = new_table()
    table.add_column("byte", justify="right", style="dim")
    table.add_column("hex", style="cyan", no_wrap=True)
    table.add_column("field", style="green", overflow="fold")
    table.add_column("value", overflow="fold")
    broken = found.error is not None
    for piece in found.pieces:
        for row in _piece_rows(piece, data, broken and piece is found.pieces[-1]):
            table.add_row(*row)
    if found.error is not None:
        where = Text(found.error.field, style="bold red")
        table.add_row(str(found.error.byte), "", where, Text(found.error.reason, style="bold red"))
    return table


def _piece_rows(piece: Piece, data: bytes, after_break: bool) -> Iterator[tuple[Text, ...]]:
    """Yield one row of 16 bytes or several; long blobs are cut."""
    raw = data[piece.start : piece.end]
    path = piece.path or ("not decoded" if after_break else "after the message")
    style = "" if piece.path else "red"
    shown = raw[:_BLOB_BYTES_SHOWN]
    for at in range(0, max(len(shown), 1), _HEX_BYTES):
        first = at == 0
        yield (
            Text(str(piece.start + at)),
            Text(shown[at : at + _HEX_BYTES].hex(" ")),
            Text(path if first else "", style=style),
            Text(_value_text(piece, raw) if first else ""),
        )
    if len(raw) > len(shown):
        yield Text(""), Text(f"… {len(raw) - len(shown)} more bytes"), Text(""), Text("")


def _value_text(piece: Piece, raw: bytes) -> str:
    if isinstance(piece.value, str):
        text = json.dumps(piece.value, ensure_ascii=False)
        return text if len(text) <= _TEXT_SHOWN else f"{text[:_TEXT_SHOWN]}… ({len(raw)} bytes)"
    if isinstance(piece.value, bytes | memoryview):
        is_uuid = isinstance(piece.value, bytes) and len(raw) == 16
        return uuid_to_text(Uuid(bytes(raw))) if is_uuid else f"{len(raw)} bytes"
    return "" if piece.value is None else str(piece.value)


def dissection_json(found: Dissection, data: bytes) -> dict[str, object]:
    """Return the pieces and the error as a JSON object."""
    pieces = [
        {
            "byte": piece.start,
            "hex": data[piece.start : piece.end].hex(),
            "field": piece.path,
            "value": _value_text(piece, data[piece.start : piece.end]),
        }
        for piece in found.pieces
    ]
    error = found.error
    if error is None:
        return {"pieces": pieces}
    return {
        "pieces": pieces,
        "error": {"field": error.field, "byte": error.byte, "reason": error.reason},
    }


def schema_table(message: MessageTable, version: int | None) -> Table:
    """Return the fields of a message, of one version or of all, as an indented table."""
    title = f"{message.name}  versions {message.min_version}-{message.max_version}"
    if message.api_key >= 0:
        title += f"  key {message.api_key}"
    title += f"  flexible {_range_text(message.flexible)}"
    table = new_table(title=title)
    names = ["field", "type", "versions", "nullable", "tag", "default", "notes"]
    for name in names:
        styles = {"field": "green", "type": "cyan"}
        table.add_column(name, style=styles.get(name), overflow="fold")
    for depth, field in _fields(message.struct, version):
        table.add_row(
            "  " * depth + field.json_name,
            _type_text(field),
            _range_text(field.versions),
            _range_text(field.nullable),
            f"{field.tag} ({_range_text(field.tagged)})" if field.tag >= 0 else "",
            _default_text(field),
            ", ".join(_notes(field)),
        )
    return table


def schema_json(message: MessageTable, version: int | None) -> dict[str, object]:
    """Return the content of the table as a JSON object; keys of Kafka's schema files stay, too."""
    return {
        "name": message.name,
        "kind": message.kind,
        **_both("api_key", "apiKey", message.api_key if message.api_key >= 0 else None),
        **_both("valid_versions", "validVersions", f"{message.min_version}-{message.max_version}"),
        **_both("flexible_versions", "flexibleVersions", _range_text(message.flexible) or "none"),
        "fields": _fields_json(message.struct, version),
    }


def _both(key: str, kafkas: str, value: object) -> dict[str, object]:
    """Return an entry under its own key, and under Kafka's key."""
    return {key: value, kafkas: value}


def _fields_json(struct: StructTable, version: int | None) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = []
    for field in struct.fields:
        if version is not None and not includes(field.versions, version):
            continue
        entry: dict[str, object] = {
            "name": field.json_name,
            "type": _type_text(field),
            "versions": _range_text(field.versions),
            **_both("nullable_versions", "nullableVersions", _range_text(field.nullable) or None),
            "tag": field.tag if field.tag >= 0 else None,
            **_both("tagged_versions", "taggedVersions", _range_text(field.tagged) or None),
            "default": _default_text(field),
            "ignorable": field.ignorable,
        }
        if field.struct is not None:
            entry["fields"] = _fields_json(field.struct, version)
        listed.append(entry)
    return listed


def _fields(
    struct: StructTable, version: int | None, depth: int = 0
) -> Iterator[tuple[int, FieldTable]]:
    for field in struct.fields:
        if version is None or includes(field.versions, version):
            yield depth, field
            if field.struct is not None:
                yield from _fields(field.struct, version, depth + 1)


def _type_text(field: FieldTable) -> str:
    kind = field.struct.name if field.struct is not None else field.kind
    return f"[]{kind}" if field.is_array else kind


def _range_text(versions: Range) -> str:
    low, high = versions
    if low > high:
        return ""
    if high == OPEN_END:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def _default_text(field: FieldTable) -> str:
    if field.default is None:
        return "null"
    if isinstance(field.default, bytes):
        is_id = field.kind == "uuid"
        return uuid_to_text(Uuid(field.default)) if is_id else field.default.hex()
    return "" if field.default == () else json.dumps(field.default)


def _notes(field: FieldTable) -> Iterator[str]:
    if field.ignorable:
        yield "ignorable"
    if field.map_key:
        yield "map key"
    if field.entity_type:
        yield field.entity_type
