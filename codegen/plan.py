"""Every decision about a generated module, as data that the templates only lay out.

`plan_modules` turns the schemas into one `ModulePlan` per module: classes with their attributes,
defaults and constants here; codec functions through `layout` (what a version looks like on the
wire) and `encoders` and `decoders` (lines of Python). Testable without jinja2.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from codegen.decoders import plan_decoders
from codegen.encoders import plan_encoders
from codegen.formats import Formats
from codegen.layout import NamedMessage, name_structs
from codegen.literals import spell_literal
from codegen.names import message_kind, module_name, snake_case
from codegen.notes import Notes, docstring
from codegen.spec import FieldSpec, MessageSpec, StructSpec
from codegen.versions import OPEN

__all__ = ["ClassPlan", "ModulePlan", "plan_modules"]

PLAIN_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "Uuid",
    "string": "str",
    "bytes": "bytes | memoryview",
    "records": "bytes | bytearray | memoryview | FileSlice",
}


@dataclass(frozen=True, slots=True)
class AttributePlan:
    """One slot: its annotation, its constructor parameter, and what the constructor stores."""

    name: str
    annotation: str
    default: str
    stored: str
    versions: str


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """One generated class."""

    name: str
    base: str
    docstring: list[str]
    attributes: list[AttributePlan]
    constants: list[tuple[str, str]]


@dataclass(slots=True)
class ModulePlan:
    """One generated module."""

    name: str
    sources: list[str]
    messages: list[NamedMessage] = field(default_factory=list)
    classes: list[ClassPlan] = field(default_factory=list)
    formats: Formats = field(default_factory=Formats)
    functions: list[list[str]] = field(default_factory=list)
    codecs: list[tuple[str, dict[int, str], dict[int, str]]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return the first line of the module's docstring."""
        return " and ".join(message.spec.name for message in self.messages)

    @property
    def summaries(self) -> list[str]:
        """Return a line per message: key, versions, flexible versions."""
        return [summary_of(message.spec) for message in self.messages]


def plan_modules(
    messages: Iterable[tuple[MessageSpec, str]], notes: Notes | None = None
) -> list[ModulePlan]:
    """Plan all modules; each message comes with the line that names its source file."""
    modules: dict[str, ModulePlan] = {}
    for spec, source in sorted(messages, key=lambda item: (module_name(item[0]), item[0].name)):
        if not spec.versions:
            continue  # the API is gone: no fields, no codec
        module = modules.setdefault(module_name(spec), ModulePlan(module_name(spec), []))
        module.sources.append(source)
        taken = {planned.name for planned in module.classes}
        message = name_structs(spec, taken)
        module.messages.append(message)
        for struct in spec.root.walk():
            module.classes.append(plan_class(message, struct, notes or {}))
        add_codecs(module, message)
    return list(modules.values())


def add_codecs(module: ModulePlan, message: NamedMessage) -> None:
    """Plan the functions that read and write one message."""
    decoders, decoder_functions = plan_decoders(message, module.formats)
    encoders, encoder_functions = plan_encoders(message, module.formats)
    module.functions += decoder_functions + encoder_functions
    module.codecs.append((message.class_of(message.spec.root), decoders, encoders))


def plan_class(message: NamedMessage, struct: StructSpec, notes: Notes) -> ClassPlan:
    """Plan the class of one struct, for all versions."""
    is_root = struct is message.spec.root
    attributes = [plan_attribute(message, each) for each in struct.fields]
    if message.has_unknown_tags:
        annotation = "list[tuple[int, bytes]] | None"
        attributes.append(
            AttributePlan(
                "unknown_tagged_fields",
                annotation,
                "None",
                "unknown_tagged_fields",
                str(message.spec.flexible),
            )
        )
    summary = summary_of(message.spec) if is_root else f"{struct.name} of {message.spec.name}."
    return ClassPlan(
        name=message.class_of(struct),
        base="Message" if is_root else "Struct",
        docstring=docstring(summary, notes, message.spec, struct),
        attributes=attributes,
        constants=plan_constants(message.spec) if is_root else [],
    )


def summary_of(spec: MessageSpec) -> str:
    """Say in one line what a message is."""
    kind = message_kind(spec)
    key = ""
    if kind in ("request", "response"):
        key = f", API key {spec.api_key}"
    elif spec.api_key >= 0:
        key = f", type {spec.api_key}"
    flexible = spec.flexible.intersect(spec.versions)
    flexible_text = f", flexible {spec.flexible}" if flexible else ", never flexible"
    unstable = ", latest version unstable" if spec.latest_version_unstable else ""
    return f"{spec.name}{key}, versions {spec.versions}{flexible_text}{unstable}."


def plan_constants(spec: MessageSpec) -> list[tuple[str, str]]:
    """Plan what a top-level class says of its schema."""
    is_record = spec.type not in ("request", "response")
    return [
        ("NAME", spell_literal(spec.name)),
        ("API_KEY", str(-1 if is_record else spec.api_key)),
        ("RECORD_TYPE", str(spec.api_key if is_record else -1)),
        ("MIN_VERSION", str(spec.versions.low)),
        ("MAX_VERSION", str(spec.versions.high)),
        ("FLEXIBLE_FROM", str(flexible_from(spec))),
        ("LATEST_VERSION_UNSTABLE", str(spec.latest_version_unstable)),
    ]


def flexible_from(spec: MessageSpec) -> int:
    """Return the first flexible version, 32767 for never."""
    return spec.flexible.low if spec.flexible else OPEN


def plan_attribute(message: NamedMessage, spec: FieldSpec) -> AttributePlan:
    """Plan one slot."""
    name = snake_case(spec.name)
    element = PLAIN_TYPES.get(spec.kind, "int")
    if spec.struct is not None:
        element = message.class_of(spec.struct)
    is_optional = bool(spec.nullable) or spec.kind == "records"
    if spec.is_array:
        annotation = f"list[{element}]"
    else:
        annotation = element
        is_optional = is_optional or (spec.struct is not None and spec.tag >= 0)
    default, stored = plan_default(message, spec, name)
    return AttributePlan(
        name=name,
        annotation=annotation + (" | None" if is_optional else ""),
        default=default,
        stored=stored,
        versions=str(spec.versions),
    )


def plan_default(message: NamedMessage, spec: FieldSpec, name: str) -> tuple[str, str]:
    """Return the parameter's default and the expression that the constructor stores."""
    if spec.default == ():
        if spec.is_array:
            return "UNSET", f"[] if {name} is UNSET else {name}"
        if spec.tag >= 0 and not spec.nullable:
            return "None", name
        assert spec.struct is not None
        return "UNSET", f"{message.class_of(spec.struct)}() if {name} is UNSET else {name}"
    is_uuid = spec.kind == "uuid" and not spec.is_array
    return ("ZERO_UUID" if is_uuid else spell_literal(spec.default)), name
