"""Plan the field tables: the schema facts as the tuples of `kraft_wire/wire/schema.py`."""

from dataclasses import dataclass

from codegen.layout import NamedMessage
from codegen.literals import spell_literal
from codegen.names import json_name, message_kind, snake_case
from codegen.plan import ModulePlan, flexible_from
from codegen.spec import FieldSpec, StructSpec
from codegen.versions import VersionRange

__all__ = ["MessageRow", "StructRow", "plan_registry", "plan_tables"]


@dataclass(frozen=True, slots=True)
class StructRow:
    """One `StructTable` in the source: its variable, names, and a line per field."""

    variable: str
    name: str
    class_name: str
    versions: str
    fields: list[str]


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One `MessageTable` in the source, its structs before it."""

    name: str
    arguments: str
    structs: list[StructRow]


def plan_tables(module: ModulePlan) -> list[MessageRow]:
    """Plan the tables of one module's messages."""
    return [plan_message(message, module.name) for message in module.messages]


def plan_message(message: NamedMessage, module: str) -> MessageRow:
    """Plan the table of one message."""
    spec = message.spec
    structs = [
        StructRow(
            variable_of(message, struct),
            struct.name,
            message.class_of(struct),
            pair(struct.versions),
            [plan_field(message, field) for field in struct.fields],
        )
        for struct in spec.root.walk()
    ]
    facts = [
        spell_literal(spec.name),
        spell_literal(message_kind(spec)),
        spell_literal(module),
        str(spec.api_key),
        str(spec.versions.low),
        str(spec.versions.high),
        pair(spec.flexible),
        str(spec.latest_version_unstable),
        variable_of(message, spec.root),
    ]
    return MessageRow(spec.name, ", ".join(facts), structs)


def variable_of(message: NamedMessage, struct: StructSpec) -> str:
    """Return the variable of a struct's table."""
    return snake_case(message.class_of(struct)).upper()


def plan_field(message: NamedMessage, field: FieldSpec) -> str:
    """Return the arguments of one `FieldTable`."""
    struct = field.struct
    return ", ".join(
        [
            spell_literal(snake_case(field.name)),
            spell_literal(json_name(field.name)),
            spell_literal("struct" if struct else field.kind),
            str(field.is_array),
            variable_of(message, struct) if struct else "None",
            pair(field.versions),
            pair(field.nullable),
            pair(field.tagged),
            str(field.tag),
            "None" if field.flexible is None else pair(field.flexible),
            spell_literal(field.default),
            str(field.ignorable),
            str(field.map_key),
            spell_literal(field.entity_type),
            str(field.zero_copy),
        ]
    )


def pair(versions: VersionRange) -> str:
    """Spell a range as the inclusive pair of the tables."""
    return f"({versions.low}, {versions.high})"


def plan_registry(modules: list[ModulePlan]) -> list[tuple[str, str]]:
    """Return name and arguments of every `RegistryEntry`, in name order."""
    rows = []
    for module in modules:
        for message in module.messages:
            spec = message.spec
            facts = [
                spell_literal(spec.name),
                spell_literal(message_kind(spec)),
                spell_literal(module.name),
                spell_literal(message.class_of(spec.root)),
                str(spec.api_key),
                str(spec.versions.low),
                str(spec.versions.high),
                str(flexible_from(spec)),
                spell_literal(spec.listeners),
                str(spec.latest_version_unstable),
            ]
            rows.append((spec.name, ", ".join(facts)))
    return sorted(rows)
