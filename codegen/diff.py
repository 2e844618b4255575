"""What changed between two releases, per message and version.

`python -m codegen diff OLD NEW` reads schema directories, jars or directories of jars and prints
a Markdown table: messages that came or went, version ranges that moved, and for every version
present in both whether its bytes still mean the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codegen.layout import FieldLayout, StructLayout, layout_of, name_structs
from codegen.schema_import import find_jars, read_jars
from codegen.spec import FieldSpec, MessageSpec, SchemaError, StructSpec, parse_message, read_text
from codegen.versions import VersionRange

__all__ = ["diff_table", "read_release"]

NO_MESSAGES = ("errors.json", "notes.json")
"""What lies beside the messages in `schemas/`."""

Form = Callable[[StructLayout], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    message: str
    versions: str
    change: str


def read_release(path: Path) -> dict[str, MessageSpec]:
    """Read the messages of a release by name; SchemaError where there is none."""
    if path.is_dir() and not any(path.glob("*.jar")):
        files = [file for file in sorted(path.rglob("*.json")) if file.name not in NO_MESSAGES]
        specs = [parse_message(read_text(file), file.name) for file in files]
    else:
        specs = [spec for found in read_jars(find_jars([path])).values() for spec in found]
    if not specs:
        raise SchemaError(str(path), "(release)", "no schema in it")
    return {spec.name: spec for spec in sorted(specs, key=lambda spec: spec.name)}


def diff_table(old: dict[str, MessageSpec], new: dict[str, MessageSpec]) -> list[str]:
    """Return the table's lines, messages in name order; equal messages are only counted."""
    rows: list[Row] = []
    equal = 0
    for name in sorted(old.keys() | new.keys()):
        changes = compare(old.get(name), new.get(name))
        rows += changes
        equal += not changes
    lines = ["| message | versions | change |", "|---|---|---|"]
    lines += [f"| {row.message} | {row.versions} | {row.change} |" for row in rows]
    return [*lines, "", f"{equal} messages are equal in both."]


def compare(old: MessageSpec | None, new: MessageSpec | None) -> list[Row]:
    """List what changed in one message; old, new or both exist."""
    if old is None:
        assert new is not None
        return [Row(new.name, str(new.versions), f"new {new.type}, {fields_of(new)} fields")]
    if new is None:
        return [Row(old.name, str(old.versions), "gone")]
    rows: list[Row] = []
    if old.versions != new.versions:
        change = "retired" if not new.versions else f"versions {old.versions} became {new.versions}"
        rows.append(Row(new.name, moved(old.versions, new.versions), change))
    if old.latest_version_unstable != new.latest_version_unstable:
        state = "unstable" if new.latest_version_unstable else "stable"
        rows.append(Row(new.name, str(new.versions.high), f"latest version is {state} now"))
    if listeners_of(old) != listeners_of(new) and new.versions:
        change = f"listeners {listeners_of(old)} became {listeners_of(new)}"
        rows.append(Row(new.name, str(new.versions), change))
    return rows + compare_fields(old, new) + compare_layouts(old, new)


def listeners_of(spec: MessageSpec) -> str:
    """Name a request's listeners; that of brokers with ZooKeeper went in 4.0 and says nothing."""
    return " and ".join(sorted(set(spec.listeners) - {"zkBroker"})) or "none"


def fields_of(spec: MessageSpec) -> int:
    """Count the fields of all structs of a message."""
    return sum(len(struct.fields) for struct in spec.root.walk())


def moved(old: VersionRange, new: VersionRange) -> str:
    """Name the versions that only one of two ranges has."""
    low, high = min(old.low, new.low), max(old.high, new.high)
    either = [
        str(version) for version in range(low, high + 1) if (version in old) != (version in new)
    ]
    return ", ".join(either)


def compare_fields(old: MessageSpec, new: MessageSpec) -> list[Row]:
    """List the fields that came, went or moved, by their path."""
    before = dict(walk_fields(old.root, ""))
    after = dict(walk_fields(new.root, ""))
    rows = []
    for path in [*after, *(path for path in before if path not in after)]:
        if path not in before:
            rows.append(Row(new.name, str(after[path].versions), f"field {path} added"))
        elif path not in after:
            rows.append(Row(new.name, str(before[path].versions), f"field {path} removed"))
        else:
            rows += [
                Row(new.name, str(after[path].versions), f"field {path}: {change}")
                for change in field_changes(before[path], after[path])
            ]
    return rows


def walk_fields(struct: StructSpec, path: str) -> list[tuple[str, FieldSpec]]:
    """List the fields of a message with their paths."""
    found: list[tuple[str, FieldSpec]] = []
    for field in struct.fields:
        found.append((path + field.name, field))
        if field.struct is not None:
            found += walk_fields(field.struct, f"{path}{field.name}.")
    return found


def field_changes(old: FieldSpec, new: FieldSpec) -> list[str]:
    """Say what is different about a field, apart from the fields inside it."""
    facts = {
        "type": ("[]" * old.is_array + old.kind, "[]" * new.is_array + new.kind),
        "versions": (old.versions, new.versions),
        "nullable": (old.nullable, new.nullable),
        "tagged": (old.tagged, new.tagged),
        "tag": (old.tag, new.tag),
        "default": (old.default, new.default),
        "ignorable": (old.ignorable, new.ignorable),
    }
    return [f"{name} {was} became {now}" for name, (was, now) in facts.items() if was != now]


def compare_layouts(old: MessageSpec, new: MessageSpec) -> list[Row]:
    """List the versions in both releases whose bytes are laid out differently."""
    both = old.versions.intersect(new.versions)
    rows = []
    changes = {
        "**the bytes of an existing version changed**": untagged_form,
        "other tagged fields in an existing version, which older readers keep unread": wire_form,
    }
    reported: set[int] = set()
    for change, form in changes.items():
        different = [
            version
            for version in both
            if form(layout_at(old, version)) != form(layout_at(new, version))
        ]
        fresh = [version for version in different if version not in reported]
        if fresh:
            rows.append(Row(new.name, ", ".join(map(str, fresh)), change))
        reported.update(different)
    return rows


def layout_at(spec: MessageSpec, version: int) -> StructLayout:
    """Resolve a message for one version."""
    return layout_of(name_structs(spec, set()), spec.root, version)


def wire_form(layout: StructLayout) -> tuple[object, ...]:
    """Reduce a layout to what decides its bytes: types and order, not names."""
    return (
        layout.is_flexible,
        tuple(wire_field(field, wire_form) for field in layout.present),
        tuple((field.tag, wire_field(field, wire_form)) for field in layout.tagged),
    )


def untagged_form(layout: StructLayout) -> tuple[object, ...]:
    """Reduce a layout to what a reader cannot skip."""
    return layout.is_flexible, tuple(wire_field(field, untagged_form) for field in layout.present)


def wire_field(field: FieldLayout, form: Form) -> tuple[object, ...]:
    """Reduce a field to what decides its bytes."""
    struct = None if field.struct is None else form(field.struct)
    kind = "struct" if field.struct is not None else field.kind
    return (kind, field.is_array, field.is_nullable, field.is_compact, struct)
