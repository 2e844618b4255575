"""The canonical form of a schema: facts only, one field per line, implied values left out.

Two releases whose facts agree give the same text, so `schemas/` diffs show what Kafka changed
and nothing else. `spec.parse_message` reads this form back to an equal `MessageSpec`.
"""

import json

from codegen.spec import FieldSpec, MessageSpec, StructSpec, implied_default
from codegen.versions import VersionRange

__all__ = ["canonical_text"]


def canonical_text(message: MessageSpec) -> str:
    """Write a schema as JSON text that ends in a newline."""
    head: dict[str, object] = {"type": message.type, "name": message.name}
    if message.api_key >= 0:
        head["apiKey"] = message.api_key
    if message.listeners:
        head["listeners"] = list(message.listeners)
    head["validVersions"] = str(message.versions)
    if message.versions:
        head["flexibleVersions"] = str(message.flexible)
    if message.latest_version_unstable:
        head["latestVersionUnstable"] = True
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    if message.versions:
        lines.append(f'  "fields": {fields_text(message.root.fields, "  ")}')
    common = [struct for struct in message.root.walk() if struct.is_common]
    if common:
        items = ",\n".join(common_text(struct) for struct in common)
        lines.append(f'  "commonStructs": [\n{items}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def common_text(struct: StructSpec) -> str:
    """Write one common struct."""
    head = f'"name": {json.dumps(struct.name)}, "versions": "{struct.versions}"'
    return f'    {{ {head}, "fields": {fields_text(struct.fields, "    ")} }}'


def fields_text(fields: tuple[FieldSpec, ...], indent: str) -> str:
    """Write a list of fields, one per line, structs defined in place nested below theirs."""
    if not fields:
        return "[]"
    lines = ",\n".join(f"{indent}  {field_text(field, indent + '  ')}" for field in fields)
    return f"[\n{lines}\n{indent}]"


def field_text(field: FieldSpec, indent: str) -> str:
    """Write one field."""
    facts = json.dumps(field_facts(field))
    struct = field.struct
    if struct is None or struct.is_common:
        return "{ " + facts[1:-1] + " }"
    return "{ " + facts[1:-1] + ', "fields": ' + fields_text(struct.fields, indent) + " }"


def field_facts(field: FieldSpec) -> dict[str, object]:
    """Return the keys of a field in their fixed order, without those that say nothing."""
    facts: dict[str, object] = {
        "name": field.name,
        "type": ("[]" if field.is_array else "") + field.kind,
        "versions": str(field.versions),
    }
    ranges: dict[str, VersionRange] = {
        "nullableVersions": field.nullable,
        "taggedVersions": field.tagged,
    }
    facts.update({key: str(value) for key, value in ranges.items() if value})
    if field.tag >= 0:
        facts["tag"] = field.tag
    if field.flexible is not None:
        facts["flexibleVersions"] = str(field.flexible)
    if field.default != implied_default(field.kind, field.is_array):
        facts["default"] = "null" if field.default is None else field.default
    flags = {"ignorable": field.ignorable, "mapKey": field.map_key, "zeroCopy": field.zero_copy}
    facts.update({key: True for key, value in flags.items() if value})
    if field.entity_type:
        facts["entityType"] = field.entity_type
    return facts
