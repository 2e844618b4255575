"""Kafka's schema files as strict dataclasses.

Whatever this reader does not know stops it with file, field and reason: an unknown key, an
impossible version range, a duplicate tag, a type that does not exist, a default that the type
cannot hold. It reads the release's own files (comments, prose, defaults in quotes) and the bare
canonical form under `schemas/` alike. It decides nothing about Python or bytes.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.versions import NONE, OPEN, VersionRange, parse_versions

__all__ = [
    "SCALARS",
    "FieldSpec",
    "MessageSpec",
    "SchemaError",
    "StructSpec",
    "implied_default",
    "parse_message",
    "read_text",
]

INTEGER_BITS = {
    "int8": (8, True),
    "int16": (16, True),
    "uint16": (16, False),
    "int32": (32, True),
    "uint32": (32, False),
    "int64": (64, True),
}
SCALARS = (*INTEGER_BITS, "bool", "float64", "uuid", "string", "bytes", "records")
MESSAGE_TYPES = (
    "request",
    "response",
    "header",
    "metadata",
    "data",
    "coordinator-key",
    "coordinator-value",
)
MESSAGE_KEYS = {
    "type",
    "name",
    "apiKey",
    "listeners",
    "validVersions",
    "flexibleVersions",
    "latestVersionUnstable",
    "deprecatedVersions",  # up to 3.9: versions that 4.0 removed; says nothing about bytes
    "fields",
    "commonStructs",
}
STRUCT_KEYS = {"name", "versions", "fields", "about"}
FIELD_KEYS = {
    "name",
    "type",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "tag",
    "flexibleVersions",
    "default",
    "ignorable",
    "mapKey",
    "entityType",
    "zeroCopy",
    "about",
    "fields",
}
ENTITY_TYPES = {"topicName", "brokerId", "groupId", "producerId", "transactionalId", "unknown"}
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)

TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")

Json = Mapping[str, object]


class SchemaError(Exception):
    """A schema file that must not be generated from."""

    def __init__(self, file: str, field: str, reason: str) -> None:
        super().__init__(f"{file}: {field}: {reason}")
        self.file = file
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field; `kind` is the element's type for arrays, a struct's name for structs."""

    name: str
    kind: str
    is_array: bool
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int
    flexible: VersionRange | None
    default: object
    ignorable: bool
    map_key: bool
    entity_type: str
    zero_copy: bool
    struct: "StructSpec | None"


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A named list of fields, defined in place or as a common struct."""

    name: str
    versions: VersionRange
    fields: tuple[FieldSpec, ...]
    is_common: bool

    def walk(self) -> "Iterator[StructSpec]":
        """Yield the structs below this one, each once, inner before outer, then this one."""
        seen: dict[str, StructSpec] = {}
        for field in self.fields:
            if field.struct is not None:
                for inner in field.struct.walk():
                    seen.setdefault(inner.name, inner)
        yield from seen.values()
        yield self


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """One schema file."""

    name: str
    type: str
    api_key: int
    listeners: tuple[str, ...]
    versions: VersionRange
    flexible: VersionRange
    latest_version_unstable: bool
    root: StructSpec


def implied_default(kind: str, is_array: bool) -> object:
    """Return the default of a field whose schema names none; () is empty: array or struct."""
    if is_array:
        return ()
    if kind in INTEGER_BITS:
        return 0
    plain = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": None}
    return plain.get(kind, bytes(16) if kind == "uuid" else ())


def read_text(path: Path) -> str:
    """Return the text of a file; SchemaError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(str(path), "(file)", str(error)) from error


def parse_message(text: str, file: str) -> MessageSpec:
    """Read one schema file; SchemaError names what is wrong with it."""

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        """Build one object; a key that is listed twice would hide what it said first."""
        names = [name for name, _ in items]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            where = next((str(value) for name, value in items if name == "name"), "(file)")
            raise SchemaError(file, where, f"the key {twice!r} is listed twice")
        return dict(items)

    try:
        document = json.loads(COMMENT.sub("", text), object_pairs_hook=pairs)
    except ValueError as error:
        raise SchemaError(file, "(file)", f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise SchemaError(file, "(file)", "not a JSON object")
    return Reader(file).message(document)


class Reader:
    """Reads one document, remembering which structs it has met."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.documents: dict[str, Json] = {}
        self.structs: dict[str, StructSpec] = {}
        self.reading: list[str] = []

    def _fail(self, field: str, reason: str) -> SchemaError:
        """Build the error for one field of this file."""
        return SchemaError(self.file, field, reason)

    def message(self, document: Json) -> MessageSpec:
        """Read the top of the file, then its fields."""
        self._check_keys(document, MESSAGE_KEYS, "(message)")
        name = self._text(document, "name", "(message)")
        if document.get("type") not in MESSAGE_TYPES:
            raise self._fail(name, f"unknown message type {document.get('type')!r}")
        versions = self._versions(document, "validVersions", name)
        flexible = self._versions(document, "flexibleVersions", name) if versions else NONE
        self._check_open(flexible, "flexibleVersions", name)
        self._optional_versions(document, "deprecatedVersions", name)
        for common in self._objects(document.get("commonStructs", []), name):
            self._check_keys(common, STRUCT_KEYS, name)
            struct_name = self._text(common, "name", name)
            if struct_name in self.documents:
                raise self._fail(struct_name, "this common struct is defined twice")
            self.documents[struct_name] = common
        fields = self._fields(document.get("fields", []), name, flexible)
        for struct_name in self.documents:
            self._common_struct(struct_name, flexible)
        return MessageSpec(
            name=name,
            type=str(document["type"]),
            api_key=self._integer(document.get("apiKey", -1), name),
            listeners=tuple(str(item) for item in self._items(document.get("listeners", []), name)),
            versions=versions,
            flexible=flexible,
            latest_version_unstable=self._flag(document, "latestVersionUnstable", name),
            root=StructSpec(name, VersionRange(0, OPEN), fields, is_common=False),
        )

    def _fields(self, items: object, path: str, flexible: VersionRange) -> tuple[FieldSpec, ...]:
        """Read a list of fields; names and tags must be unique in it."""
        fields: list[FieldSpec] = []
        names: set[str] = set()
        tags: set[int] = set()
        for item in self._objects(items, path):
            field = self._field(item, path, flexible)
            where = f"{path}.{field.name}"
            if field.name in names:
                raise self._fail(where, "this field is defined twice")
            if field.tag >= 0 and field.tag in tags:
                raise self._fail(where, f"duplicate tag {field.tag}")
            names.add(field.name)
            tags.add(field.tag)
            fields.append(field)
        highest = max(tags, default=-1)
        missing = sorted(set(range(highest + 1)) - tags)
        if missing:
            raise self._fail(path, f"tags are not contiguous: {missing[0]} is missing")
        return tuple(fields)

    def _field(self, item: Json, path: str, flexible: VersionRange) -> FieldSpec:
        """Read one field and check that its ranges agree with each other.

        A tagged field may leave out `versions`: it then exists where it is tagged.
        """
        name = self._text(item, "name", path)
        where = f"{path}.{name}"
        if not FIELD_NAME.fullmatch(name):
            raise self._fail(where, "not a field name")
        self._check_keys(item, FIELD_KEYS, where)
        type_text = self._text(item, "type", where)
        is_array = type_text.startswith("[]")
        kind = type_text.removeprefix("[]")
        struct = self._struct(item, kind, where, flexible)
        nullable = self._optional_versions(item, "nullableVersions", where)
        tagged = self._optional_versions(item, "taggedVersions", where)
        versions = tagged
        if "versions" in item or not tagged:
            versions = self._versions(item, "versions", where)
        if struct is not None and not struct.is_common:
            struct = self.structs[kind] = replace(struct, versions=versions)
        field = FieldSpec(
            name=name,
            kind=kind,
            is_array=is_array,
            versions=versions,
            nullable=nullable,
            tagged=tagged,
            tag=self._integer(item.get("tag", -1), where),
            flexible=self._versions(item, "flexibleVersions", where)
            if "flexibleVersions" in item
            else None,
            default=self._default(item, kind, is_array, where),
            ignorable=self._flag(item, "ignorable", where),
            map_key=self._flag(item, "mapKey", where),
            entity_type=self._entity_type(item, where),
            zero_copy=self._flag(item, "zeroCopy", where),
            struct=struct,
        )
        self._check_ranges(field, where, flexible)
        return field

    def _check_ranges(self, field: FieldSpec, where: str, flexible: VersionRange) -> None:
        """Refuse ranges that contradict each other."""
        if bool(field.tagged) != (field.tag >= 0):
            raise self._fail(where, "tag and taggedVersions come together or not at all")
        self._check_open(field.tagged, "taggedVersions", where)
        if not field.versions.covers(field.tagged):
            raise self._fail(where, f"tagged in {field.tagged}, but exists in {field.versions}")
        if not flexible.covers(field.tagged):
            raise self._fail(where, f"tagged in {field.tagged}, but flexible in {flexible}")
        if field.default is None and not field.nullable and field.kind != "records":
            raise self._fail(where, "null is the default of a field that is never null")
        can_be_null = field.is_array or field.struct or field.kind in ("string", "bytes", "records")
        if field.nullable and not can_be_null:
            raise self._fail(where, f"a {field.kind} cannot be null")

    def _struct(
        self, item: Json, kind: str, where: str, flexible: VersionRange
    ) -> StructSpec | None:
        """Resolve the type of a field: None for a plain type, else the struct."""
        if kind in SCALARS:
            if "fields" in item:
                raise self._fail(where, f"a {kind} has no fields of its own")
            return None
        if not TYPE_NAME.fullmatch(kind):
            raise self._fail(where, f"type {kind!r} does not exist")
        if "fields" not in item:
            if kind not in self.documents:
                raise self._fail(where, f"type {kind!r} does not exist")
            return self._common_struct(kind, flexible)
        if kind in self.structs or kind in self.documents:
            raise self._fail(where, f"struct {kind} is defined twice")
        fields = self._fields(item["fields"], where, flexible)
        self.structs[kind] = StructSpec(kind, VersionRange(0, OPEN), fields, is_common=False)
        return self.structs[kind]

    def _common_struct(self, name: str, flexible: VersionRange) -> StructSpec:
        """Read a common struct when it is first used; it may be used before it is defined."""
        if name in self.structs:
            return self.structs[name]
        if name in self.reading:
            raise self._fail(name, "this struct contains itself")
        self.reading.append(name)
        document = self.documents[name]
        versions = self._versions(document, "versions", name)
        fields = self._fields(document.get("fields"), name, flexible)
        self.reading.pop()
        self.structs[name] = StructSpec(name, versions, fields, is_common=True)
        return self.structs[name]

    def _default(self, item: Json, kind: str, is_array: bool, where: str) -> object:
        """Read the default as a Python value of the field's type.

        The text "null" is null; a JSON null says nothing, as in the release's own generator: the
        default of such a field is what its type implies.
        """
        value = item.get("default")
        if value is None:
            return implied_default(kind, is_array)
        if value == "null":
            return None
        if is_array or kind not in SCALARS or kind in ("bytes", "records", "uuid"):
            raise self._fail(where, f"default {value!r} is not null")
        if kind == "string":
            return str(value)
        if kind == "bool":
            if str(value).lower() not in ("true", "false"):
                raise self._fail(where, f"default {value!r} is not a bool")
            return str(value).lower() == "true"
        return self._number(value, kind, where)

    def _number(self, value: object, kind: str, where: str) -> int | float:
        """Read a number that may be quoted and may be hexadecimal."""
        try:
            if kind == "float64":
                return float(str(value))
            number = int(str(value), 0)
        except ValueError as error:
            raise self._fail(where, f"default {value!r} is not a number") from error
        bits, signed = INTEGER_BITS[kind]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not low <= number <= high:
            raise self._fail(where, f"default {number} does not fit {kind}")
        return number

    def _check_open(self, versions: VersionRange, key: str, where: str) -> None:
        """Refuse an end where Kafka's generator does: what became flexible or tagged stays so."""
        if versions and versions.high != OPEN:
            raise self._fail(where, f"{key} {versions} is an impossible version range: it ends")

    def _entity_type(self, item: Json, where: str) -> str:
        """Read what the value names: a topic, a broker, a group, and so on."""
        entity = str(item.get("entityType", ""))
        if entity and entity not in ENTITY_TYPES:
            raise self._fail(where, f"unknown entityType {entity!r}")
        return entity

    def _check_keys(self, item: Json, known: set[str], where: str) -> None:
        """Refuse a key that this reader has no meaning for."""
        for key in item:
            if key not in known:
                raise self._fail(where, f"unknown key {key!r}")

    def _versions(self, item: Json, key: str, where: str) -> VersionRange:
        """Read a range that must be there."""
        try:
            return parse_versions(self._text(item, key, where))
        except ValueError as error:
            raise self._fail(where, f"{key}: {error}") from error

    def _optional_versions(self, item: Json, key: str, where: str) -> VersionRange:
        """Read a range whose absence means no version."""
        return self._versions(item, key, where) if key in item else NONE

    def _text(self, item: Json, key: str, where: str) -> str:
        """Read a string that must be there."""
        value = item.get(key)
        if not isinstance(value, str):
            raise self._fail(where, f"{key} is missing or not a string")
        return value

    def _integer(self, value: object, where: str) -> int:
        """Read an int16, also one in quotes: keys and tags."""
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= OPEN:
            raise self._fail(where, f"{value!r} is not a key or tag")
        return value

    def _flag(self, item: Json, key: str, where: str) -> bool:
        """Read a bool, also one in quotes; absent is false."""
        value = item.get(key, False)
        if str(value).lower() not in ("true", "false"):
            raise self._fail(where, f"{key} is {value!r}, not true or false")
        return str(value).lower() == "true"

    def _items(self, value: object, where: str) -> list[object]:
        """Read a list."""
        if not isinstance(value, list):
            raise self._fail(where, f"{value!r} is not a list")
        return value

    def _objects(self, value: object, where: str) -> list[Json]:
        """Read a list of objects."""
        items = self._items(value, where)
        for item in items:
            if not isinstance(item, dict):
                raise self._fail(where, f"{item!r} is not an object")
        return [item for item in items if isinstance(item, dict)]
