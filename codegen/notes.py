"""Our own short notes on fields: `schemas/notes.json`, from which docstrings of classes are made.

A key is `Message.Field`, or `Message.Struct.Field` below the top, in the schema's spelling. A note
on a field that does not exist stops the generation, so that none outlives what it explains.
"""

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path

from codegen.names import snake_case
from codegen.source import indent
from codegen.spec import MessageSpec, SchemaError, StructSpec, read_text

__all__ = ["Notes", "check_notes", "docstring", "read_notes"]

Notes = dict[str, str]

_COLUMNS = 96  # of a docstring inside of a class
_NOTE_CHARACTERS_MAX = 240


def read_notes(path: Path) -> Notes:
    """Read the file, or nothing where there is none; SchemaError names the note that is no note."""
    if not path.exists():
        return {}
    try:
        pairs = json.loads(read_text(path), object_pairs_hook=tuple)
    except ValueError as error:
        raise SchemaError(path.name, "-", f"not JSON: {error}") from error
    if not isinstance(pairs, tuple):
        raise SchemaError(path.name, "-", "is not an object of notes")
    notes: Notes = {}
    for key, note in pairs:
        if key in notes:
            raise SchemaError(path.name, key, "two notes on one field")
        if not isinstance(note, str) or not note.endswith(".") or not note.isprintable():
            raise SchemaError(path.name, key, "a note is one line of text that ends with a stop")
        if len(note) > _NOTE_CHARACTERS_MAX:
            raise SchemaError(path.name, key, f"longer than {_NOTE_CHARACTERS_MAX} characters")
        notes[key] = note
    return notes


def check_notes(notes: Notes, messages: Iterable[MessageSpec], file: str) -> None:
    """Raise SchemaError for a note on a field that no class will have."""
    known = {
        _key(message, struct, field.name)
        for message in messages
        if message.versions
        for struct in message.root.walk()
        for field in struct.fields
    }
    for key in notes:
        if key not in known:
            raise SchemaError(file, key, "a note on a field that does not exist")


def docstring(summary: str, notes: Notes, message: MessageSpec, struct: StructSpec) -> list[str]:
    """Return the lines of a class's docstring: what it is, and each field that has a note."""
    lines = []
    for field in struct.fields:
        note = notes.get(_key(message, struct, field.name))
        if note is not None:
            text = f"{snake_case(field.name)}: {note}"
            lines += textwrap.wrap(text, _COLUMNS, subsequent_indent="    ", break_on_hyphens=False)
    if not lines:
        return indent([f'"""{summary}"""'])
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return [*indent([f'"""{summary}']), "", *indent([*escaped, '"""'])]


def _key(message: MessageSpec, struct: StructSpec, field_name: str) -> str:
    inner = "" if struct is message.root else f"{struct.name}."
    return f"{message.name}.{inner}{field_name}"
