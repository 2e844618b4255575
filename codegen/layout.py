"""What a message looks like on the wire in one version.

Two versions with equal layouts share their codec functions. A layout lists the fields in wire
order with their resolved form, the tagged ones apart, and the absent ones with what an encoder
has to check: nothing here knows Python code.
"""

from dataclasses import dataclass

from codegen.names import class_name, snake_case
from codegen.spec import FieldSpec, MessageSpec, StructSpec

__all__ = ["FieldLayout", "NamedMessage", "StructLayout", "layout_of", "name_structs"]


@dataclass(frozen=True, slots=True)
class NamedMessage:
    """A message with the class names of its structs decided."""

    spec: MessageSpec
    class_names: dict[str, str]

    def class_of(self, struct: StructSpec) -> str:
        """Return the generated class of a struct."""
        return self.class_names[struct.name]

    @property
    def has_unknown_tags(self) -> bool:
        """Whether some version is flexible, so that instances keep unknown tags."""
        return bool(self.spec.flexible.intersect(self.spec.versions))


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field in one version."""

    name: str
    kind: str
    is_array: bool
    is_nullable: bool
    is_optional: bool
    """Whether the attribute may hold None, in this version or another."""
    is_compact: bool
    is_copied: bool
    """Of blobs: small ones that outlive the frame are copied, as Apache copies them."""
    tag: int
    default: object
    struct: "StructLayout | None"
    ignorable: bool
    """Of absent fields only: dropped without a check."""


@dataclass(frozen=True, slots=True)
class StructLayout:
    """One struct in one version; equal layouts share functions."""

    class_name: str
    is_flexible: bool
    keeps_tags: bool
    present: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]
    absent: tuple[FieldLayout, ...]
    foreign_tags: tuple[int, ...]
    """Tags that the schema knows, but not in this version."""


def name_structs(spec: MessageSpec, taken: set[str]) -> NamedMessage:
    """Decide the class name of every struct of a message, beside those already in its module."""
    names = {struct.name: class_name(spec, struct.name, taken) for struct in spec.root.walk()}
    return NamedMessage(spec, names)


def layout_of(message: NamedMessage, struct: StructSpec, version: int) -> StructLayout:
    """Resolve a struct for one version."""
    present: list[FieldLayout] = []
    tagged: list[FieldLayout] = []
    absent: list[FieldLayout] = []
    for field in struct.fields:
        if version not in field.versions:
            absent.append(field_layout(message, field, version))
        elif version in field.tagged:
            tagged.append(field_layout(message, field, version))
        else:
            present.append(field_layout(message, field, version))
    return StructLayout(
        class_name=message.class_of(struct),
        is_flexible=version in message.spec.flexible,
        keeps_tags=message.has_unknown_tags,
        present=tuple(present),
        tagged=tuple(sorted(tagged, key=lambda field: field.tag)),
        absent=tuple(absent),
        foreign_tags=tuple(
            field.tag for field in struct.fields if field.tag >= 0 and version not in field.tagged
        ),
    )


def field_layout(message: NamedMessage, field: FieldSpec, version: int) -> FieldLayout:
    """Resolve a field for one version; what does not matter in it is left at one value."""
    is_flexible = version in message.spec.flexible
    is_absent = version not in field.versions
    struct = None
    if field.struct is not None and is_absent:
        struct = StructLayout(message.class_of(field.struct), False, False, (), (), (), ())
    elif field.struct is not None:
        struct = layout_of(message, field.struct, version)
    return FieldLayout(
        name=snake_case(field.name),
        kind=field.kind,
        is_array=field.is_array,
        is_nullable=version in field.nullable,
        is_optional=bool(field.nullable) or field.kind == "records",
        is_compact=is_flexible and (field.flexible is None or version in field.flexible),
        is_copied=field.kind == "bytes" and not field.zero_copy,
        tag=field.tag,
        default=field.default,
        struct=struct,
        ignorable=field.ignorable and is_absent,
    )
