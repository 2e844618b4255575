"""Plan the functions that read a message: one per distinct layout of each struct.

A run of fixed-size fields is read together with the payload before it, by a function that the
payload's length byte picks from a table. Arrays of fixed-size structs go through `iter_unpack`.
Tagged fields have a function of their own, entered only when there are any.
"""

from codegen.formats import FIXED_SIZES, Formats
from codegen.functions import Definition, Functions, by_version
from codegen.layout import FieldLayout, NamedMessage, StructLayout
from codegen.literals import default_literal
from codegen.source import INDENT, indent
from codegen.steps import Fixed, Payload, Step, field_steps, steps_of

__all__ = ["plan_decoders"]


def plan_decoders(
    message: NamedMessage, formats: Formats
) -> tuple[dict[int, str], list[list[str]]]:
    """Return the function of every version, and the functions' lines in definition order."""
    plan = DecoderPlan(formats)
    return by_version(message, plan.one), plan.functions.defined


class DecoderPlan:
    """The reading functions of one message, each layout once."""

    def __init__(self, formats: Formats) -> None:
        self.formats = formats
        self.functions = Functions("read")

    def one(self, layout: StructLayout) -> str:
        """Return the function that reads one struct."""
        return self.functions.name("", layout, self._define_one)

    def _define_one(self, layout: StructLayout) -> Definition:
        body = [*self._struct(layout), "return item, pos"]
        return Definition(["data: Buffer", "pos: int"], f"tuple[{layout.class_name}, int]", body)

    def _array(self, layout: StructLayout) -> str:
        """Return the function that reads `count` structs."""
        return self.functions.name("_list", layout, self._define_array)

    def _define_array(self, layout: StructLayout) -> Definition:
        steps = steps_of(layout)
        assert steps, f"{layout.class_name} takes no byte, so its count is not bounded"
        fixed = [step for step in steps if isinstance(step, Fixed)]
        if len(fixed) == len(steps) and not layout.tagged:
            body = self._fixed_array(layout, fixed)
        else:
            inner = [*self._struct(layout), "items.append(item)"]
            body = ["items = []", "for _ in range(count):", *indent(inner)]
        result = f"tuple[list[{layout.class_name}], int]"
        arguments = ["data: Buffer", "pos: int", "count: int"]
        return Definition(arguments, result, [*body, "return items, pos"])

    def _fixed_array(self, layout: StructLayout, fixed: list[Fixed]) -> list[str]:
        """Read equal runs with one iterator; a struct with tags is left to the reference codec."""
        size = sum(FIXED_SIZES[step.code] for step in fixed)
        iterate = self.formats.iterate([step.code for step in fixed])
        inner = ["if tags:", f"{INDENT}raise Unusual"] if layout.is_flexible else []
        inner.append(f"item = new({layout.class_name})")
        inner += [f"item.{step.field.name} = {step.local}" for step in fixed if step.field]
        inner += [*self._defaults(layout), "items.append(item)"]
        names = ", ".join(step.local for step in fixed) + ("," if len(fixed) == 1 else "")
        return [
            f"end = pos + count * {size}",
            "if end > len(data):",
            f"{INDENT}raise Unusual",
            "items = []",
            f"for {names} in {iterate}(data[pos:end]):",
            *indent(inner),
            "pos = end",
        ]

    def _read(self, steps: list[Step]) -> list[str]:
        """Read steps into `item`, every payload together with the run behind it."""
        lines: list[str] = []
        payload: Payload | None = None
        run: list[Fixed] = []
        for step in steps:
            if isinstance(step, Fixed):
                run.append(step)
            else:
                lines += self._read_payload(payload, run)
                payload, run = step, []
        return lines + self._read_payload(payload, run)

    def _read_run(self, run: list[Fixed]) -> list[str]:
        """Read a run of fixed-size values."""
        if not run:
            return []
        size = sum(FIXED_SIZES[step.code] for step in run)
        if len(run) == 1 and run[0].code == "B":
            return [f"{target(run[0])} = data[pos]", "pos += 1"]
        unpack = self.formats.unpack([step.code for step in run])
        return [f"{targets(run)} = {unpack}(data, pos)", f"pos += {size}"]

    def _read_payload(self, payload: Payload | None, run: list[Fixed]) -> list[str]:
        """Read a payload and the run behind it."""
        if payload is None:
            return self._read_run(run)
        if payload.kind in ("text", "numbers"):
            return self._read_by_table(payload, run)
        if payload.kind == "struct":
            return [*self._read_struct(payload), *self._read_run(run)]
        if payload.kind == "structs":
            return [*self._read_structs(payload), *self._read_run(run)]
        if payload.kind == "blob":
            return [*self._read_blob(payload), *self._read_run(run)]
        style = "compact" if payload.field.is_compact else "classic"
        function = f"{style}_{payload.kind}"
        local, n = target(payload), payload.length
        take = f"{local}, pos = {function}(data, pos, {n})"
        if not payload.field.is_nullable:
            return [take, *self._read_run(run)]
        present = n if payload.field.is_compact else f"{n} >= 0"
        null = [f"if {present}:", f"{INDENT}{take}", "else:", f"{INDENT}{local} = None"]
        return [*null, *self._read_run(run)]

    def _read_by_table(self, payload: Payload, run: list[Fixed]) -> list[str]:
        """Read a short string or array with the run behind it, a long one by itself."""
        field, local, n = payload.field, target(payload), payload.length
        element = payload.code
        width = FIXED_SIZES.get(element, 1)
        bias = 1 if field.is_compact else 0
        rest = sum(FIXED_SIZES[step.code] for step in run) - bias * width
        table = self.formats.unpackers(element, [step.code for step in run], field.is_compact)
        style = "compact" if field.is_compact else "classic"
        take = f"{table}[{n}](data, pos)"
        if payload.kind == "text":
            names = ", ".join(["raw", *map(target, run)])
            short = [f"{names if run else '(raw,)'} = {take}", f"{local} = raw.decode()"]
            long = f"{local}, pos = {style}_text(data, pos, {n})"
        else:
            short = [f"values = [*{take}]"]
            short += [f"{target(step)} = values.pop()" for step in reversed(run)]
            short.append(f"{local} = values")
            long = f'{local}, pos = {style}_numbers(data, pos, {n}, "{element}", {width})'
        short.append(f"pos += {advance(n, width, rest)}")
        long_lines = [long, *self._read_run(run)]
        null = [f"{local} = None", *self._read_run(run)] if field.is_nullable else []
        return branch_by_length(payload, short, null, long_lines)

    def _read_structs(self, payload: Payload) -> list[str]:
        """Read an array of structs."""
        field, n = payload.field, payload.length
        assert field.struct is not None
        call = f"{target(payload)}, pos = {self._array(field.struct)}(data, pos, "
        null = [f"{target(payload)} = None"] if field.is_nullable else ["raise Unusual"]
        empty = f"{INDENT}{target(payload)} = []"
        if not field.is_compact:
            some = [f"elif {n} > 0:", f"{INDENT}{call}{n})"]
            return [f"if {n} == 0:", empty, *some, "else:", *indent(null)]
        return [
            f"if {n} == 1:",
            empty,
            f"elif {n} >= 128:",
            f"{INDENT}{n}, pos = long_count(data, pos, {n})",
            f"{INDENT}{call}{n})",
            f"elif {n}:",
            f"{INDENT}{call}{n} - 1)",
            "else:",
            *indent(null),
        ]

    def _read_blob(self, payload: Payload) -> list[str]:
        """Slice records out of the data without a copy; small blobs are copied."""
        field, n = payload.field, payload.length
        lines: list[str] = []
        if field.is_compact:
            lines = [
                f"if {n} < 128:",
                f"{INDENT}{n} -= 1",
                "elif 0 < (second := data[pos]) < 128:",
                f"{INDENT}{n} = (second << 7 | {n} & 127) - 1",
                f"{INDENT}pos += 1",
                "else:",
                f"{INDENT}{n}, pos = long_count(data, pos, {n})",
            ]
        null = f"{target(payload)} = None" if field.is_nullable else "raise Unusual"
        blob = "bytes(data[pos:end])" if field.is_copied else "memoryview(data)[pos:end]"
        return [
            *lines,
            f"if {n} < 0:",
            f"{INDENT}{null}",
            "else:",
            f"{INDENT}end = pos + {n}",
            f"{INDENT}if end > len(data):",
            f"{INDENT * 2}raise Unusual",
            f"{INDENT}{target(payload)} = {blob}",
            f"{INDENT}pos = end",
        ]

    def _read_struct(self, payload: Payload) -> list[str]:
        """Read one struct; a marker other than the two that are written is left to others."""
        field = payload.field
        assert field.struct is not None
        call = f"{target(payload)}, pos = {self.one(field.struct)}(data, pos)"
        if not field.is_nullable:
            return [call]
        null = "-1" if field.tag < 0 else "0"
        return [
            f"if {payload.length} == 1:",
            f"{INDENT}{call}",
            f"elif {payload.length} == {null}:",
            f"{INDENT}{target(payload)} = None",
            "else:",
            f"{INDENT}raise Unusual",
        ]

    def _struct(self, layout: StructLayout) -> list[str]:
        """Make the object `item` and read all its fields."""
        lines = [f"item = new({layout.class_name})", *self._read(steps_of(layout))]
        lines += self._defaults(layout)
        if layout.is_flexible:
            lines += ["if tags:", f"{INDENT}{self._read_tags(layout)}"]
        return lines

    def _defaults(self, layout: StructLayout) -> list[str]:
        """Store what the wire does not say, or not yet."""
        absent = (*layout.tagged, *layout.absent)
        lines = [f"item.{field.name} = {default_literal(field)}" for field in absent]
        if layout.keeps_tags:
            lines.append("item.unknown_tagged_fields = None")
        return lines

    def _read_tags(self, layout: StructLayout) -> str:
        """Return the line that reads the tagged fields of an object."""
        if not layout.tagged and not layout.foreign_tags:
            return "item.unknown_tagged_fields, pos = unknown_tags(data, pos, tags)"
        name = self.functions.name("_tags", layout, self._define_tags)
        return f"pos = {name}(item, data, pos, tags)"

    def _define_tags(self, layout: StructLayout) -> Definition:
        arguments = [f"item: {layout.class_name}", "data: Buffer", "pos: int", "count: int"]
        return Definition(arguments, "int", self._tags_body(layout))

    def _tags_body(self, layout: StructLayout) -> list[str]:
        """Read tagged fields: the known, the known of other versions, the unknown."""
        inner = ["tag, size, pos = tag_head(data, pos)"]
        word = "if"
        for field in layout.tagged:
            inner += [f"{word} tag == {field.tag}:", *indent(self._read_tagged(field))]
            word = "elif"
        if layout.foreign_tags:
            foreign = ", ".join(map(str, sorted(layout.foreign_tags)))
            inner += [f"{word} tag in ({foreign},):", f"{INDENT}raise Unusual"]
        return [
            "if count > 64:",
            f"{INDENT}raise Unusual",
            "unknown = []",
            "for _ in range(count):",
            *indent(inner),
            f"{INDENT}else:",
            f"{INDENT * 2}value, pos = unknown_tag(data, pos, size)",
            f"{INDENT * 2}unknown.append((tag, value))",
            "if unknown:",
            f"{INDENT}item.unknown_tagged_fields = unknown",
            "return pos",
        ]

    def _read_tagged(self, field: FieldLayout) -> list[str]:
        """Read one tagged field and store it."""
        return self._read(field_steps(field, is_tagged=True))


def branch_by_length(
    payload: Payload, short: list[str], null: list[str], long: list[str]
) -> list[str]:
    """Choose by the length; `null` is empty where the field is never null."""
    n, field = payload.length, payload.field
    if not field.is_compact:
        lines = [f"if 0 <= {n} < 128:", *indent(short)]
        if null:
            lines += [f"elif {n} < 0:", *indent(null)]
    elif null:
        lines = [f"if {n} == 0:", *indent(null), f"elif {n} < 128:", *indent(short)]
    else:
        lines = [f"if {n} < 128:", *indent(short)]
    return [*lines, "else:", *indent(long)]


def advance(n: str, width: int, rest: int) -> str:
    """Spell how far a payload of so many elements and the run behind it reach."""
    elements = n if width == 1 else f"{width} * {n}"
    if rest == 0:
        return elements
    return f"{elements} + {rest}" if rest > 0 else f"{elements} - {-rest}"


def targets(run: list[Fixed]) -> str:
    """Spell what a run is unpacked into."""
    names = ", ".join(map(target, run))
    return f"({names},)" if len(run) == 1 else names


def target(step: Step) -> str:
    """Spell where a value goes: an attribute, or the local variable of a length."""
    return step.local if step.field is None else f"item.{step.field.name}"
