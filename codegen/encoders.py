"""Plan the functions that write a message: one per distinct layout of each struct.

A run of fixed-size fields is packed together with the string or number array behind it, by a
function that the payload's length picks from a table; the last payload of a struct takes the run
behind it along. What a version cannot carry is tested first. Unknown tagged fields, and every
value of a wrong type, are left to the reference codec.
"""

from struct import Struct

from codegen.formats import Formats
from codegen.functions import Definition, Functions, by_version
from codegen.layout import FieldLayout, NamedMessage, StructLayout
from codegen.literals import default_literal, is_default_test, not_default_test
from codegen.source import INDENT, indent
from codegen.steps import Fixed, Payload, Step, field_steps, local_name, steps_of

__all__ = ["plan_encoders"]

Values = list[tuple[str, str]]
"""Format code and expression of each value of a run; the expression of a zero byte is empty."""

SHORT_COUNT: Values = [("B", "n + 1")]
"""A compact length below 128."""


def plan_encoders(
    message: NamedMessage, formats: Formats
) -> tuple[dict[int, str], list[list[str]]]:
    """Return the function of every version, and the functions' lines in definition order."""
    plan = EncoderPlan(formats)
    return by_version(message, plan.one), plan.functions.defined


class EncoderPlan:
    """The writing functions of one message, each layout once."""

    def __init__(self, formats: Formats) -> None:
        self.formats = formats
        self.functions = Functions("write")

    def one(self, layout: StructLayout) -> str:
        """Return the function that writes one struct."""
        return self.functions.name("", layout, self._define_one)

    def _define_one(self, layout: StructLayout) -> Definition:
        arguments = [f"item: {layout.class_name}", "out: Append"]
        return Definition(arguments, "None", self._struct(layout) or ["pass"])

    def array(self, layout: StructLayout) -> str:
        """Return the function that writes the elements of an array."""
        return self.functions.name("_list", layout, self._define_array)

    def _define_array(self, layout: StructLayout) -> Definition:
        arguments = [f"items: list[{layout.class_name}]", "out: Append"]
        body = ["for item in items:", *indent(self._struct(layout))]
        return Definition(arguments, "None", body)

    def _struct(self, layout: StructLayout) -> list[str]:
        """Write the fields of `item`."""
        lines: list[str] = []
        if layout.keeps_tags and not layout.tagged:
            lines += ["if item.unknown_tagged_fields is not None:", f"{INDENT}raise Unusual"]
        for field in layout.absent:
            if not field.ignorable:
                lines += [
                    f"if {not_default_test(field, f'item.{field.name}')}:",
                    f"{INDENT}raise Unusual",
                ]
        for field in layout.present:
            if field.kind == "uuid" and not field.is_array:  # struct would pad or cut it
                lines += [f"if len(item.{field.name}) != 16:", f"{INDENT}raise Unusual"]
        steps = steps_of(layout)
        if layout.tagged:
            steps = steps[:-1]  # the count belongs to the tag section below
        lines += Body(self, "out").write(steps)
        return lines + (self._tag_section(layout) if layout.tagged else [])

    def _tag_section(self, layout: StructLayout) -> list[str]:
        """Write no tags when all known ones are default, else call what writes them."""
        tests = [is_default_test(field, f"item.{field.name}") for field in layout.tagged]
        return [
            f"if item.unknown_tagged_fields is None and {' and '.join(tests)}:",
            f'{INDENT}out(b"\\x00")',
            "else:",
            f"{INDENT}{self._tags(layout)}(item, out)",
        ]

    def _tags(self, layout: StructLayout) -> str:
        """Return the function that writes the tag section of an object that has tags."""
        return self.functions.name("_tags", layout, self._define_tags)

    def _define_tags(self, layout: StructLayout) -> Definition:
        body = [
            "if item.unknown_tagged_fields is not None:",
            f"{INDENT}raise Unusual",
            "fields: list[tuple[int, list[Part]]] = []",
        ]
        for field in layout.tagged:
            default_is_none = default_literal(field) == "None"
            inside = Body(self, "put", is_never_null=default_is_none)
            value = f"item.{field.name}"
            if default_is_none:
                body.append(f"{local_name(field)} = {value}")
                value = local_name(field)
            body += [
                f"if {not_default_test(field, value)}:",
                f"{INDENT}parts: list[Part] = []",
                f"{INDENT}put = parts.append",
                *indent(inside.write(field_steps(field, is_tagged=True))),
                f"{INDENT}fields.append(({field.tag}, parts))",
            ]
        arguments = [f"item: {layout.class_name}", "out: Append"]
        body = [*without_repeated_annotations(body), "write_tags(fields, out)"]
        return Definition(arguments, "None", body)


class Body:
    """Writes steps from the attributes of `item` through one append function.

    Inside a tag whose default is null the value was tested before, and `is_never_null` holds.
    """

    def __init__(self, plan: EncoderPlan, out: str, is_never_null: bool = False) -> None:
        self.plan = plan
        self.is_never_null = is_never_null
        self.formats = plan.formats
        self.out = out

    def write(self, steps: list[Step]) -> list[str]:
        """Write all steps; the run behind the last payload goes with it where it can."""
        lines: list[str] = []
        prefix: Values = []
        last = max((at for at, step in enumerate(steps) if isinstance(step, Payload)), default=-1)
        for at, step in enumerate(steps[: last + 1]):
            if isinstance(step, Fixed):
                if step.field is not None:
                    prefix.append((step.code, f"item.{step.field.name}"))
                continue
            suffix = self._values(steps[last + 1 :]) if at == last else []
            fused = step.kind in ("text", "numbers")
            lines += self._payload(step, prefix, suffix if fused else [])
            prefix = [] if fused else suffix
        if last < 0:
            prefix = self._values(steps)
        return [*lines, *self._run(prefix)]

    def _values(self, steps: list[Step]) -> Values:
        """Turn a run of fixed steps into values; an empty tag section is a zero byte."""
        values: Values = []
        for step in steps:
            assert isinstance(step, Fixed)
            if step.field is None:
                values.append(("x", ""))
            else:
                values.append((step.code, f"item.{step.field.name}"))
        return values

    def _run(self, values: Values) -> list[str]:
        """Write a run of values; without a call where the bytes are known or in a table."""
        if not values:
            return []
        if values == SHORT_COUNT:
            return [f"{self.out}(one_byte[n + 1])"]
        if all(expression in ("", "0", "1", "-1") for _, expression in values):
            return [f"{self.out}({spelled_bytes(values)})"]
        pack = self.formats.pack([code for code, _ in values])
        return [f"{self.out}({pack}({arguments(values)}))"]

    def _payload(self, step: Payload, prefix: Values, suffix: Values) -> list[str]:
        """Write the run before a payload with its length, the payload, and the run behind it."""
        field = step.field
        if step.kind == "struct":
            return self._one(step, prefix)
        value = f"item.{field.name}"
        if not field.is_optional:
            return self._present(step, prefix, value, suffix)
        if not field.is_nullable:
            check = [
                f"{step.local} = {value}",
                f"if {step.local} is None:",
                f"{INDENT}raise Unusual",
            ]
            return [*check, *self._present(step, prefix, step.local, suffix)]
        if self.is_never_null:
            return self._present(step, prefix, step.local, suffix)
        code = length_code(field)
        null = [(code, "0" if field.is_compact else "-1")]
        return [
            f"{step.local} = {value}",
            f"if {step.local} is None:",
            *indent(self._run([*prefix, *null, *suffix])),
            "else:",
            *indent(self._present(step, prefix, step.local, suffix)),
        ]

    def _present(self, step: Payload, prefix: Values, value: str, suffix: Values) -> list[str]:
        """Write a payload that is not null."""
        if step.kind == "text":
            head = [f"raw = {value}.encode()", "n = len(raw)"]
            return head + self._by_table(step, prefix, "raw", suffix)
        local = step.local
        head = [] if value == local else [f"{local} = {value}"]
        if step.kind == "numbers":
            return [*head, f"n = len({local})", *self._by_table(step, prefix, local, suffix)]
        if step.kind == "blob":
            is_records = step.field.kind == "records"
            size = f"size_of({local})" if is_records else f"len({local})"
            return [*head, f"n = {size}", *self._length(step, prefix), f"{self.out}({local})"]
        if step.kind == "texts":
            style = "compact" if step.field.is_compact else "classic"
            write = f"write_{style}_texts({local}, {self.out})"
        else:
            assert step.field.struct is not None
            call = f"{self.plan.array(step.field.struct)}({local}, {self.out})"
            write = f"if n:\n{INDENT}{call}"
        return [*head, f"n = len({local})", *self._length(step, prefix), *write.splitlines()]

    def _by_table(self, step: Payload, prefix: Values, payload: str, suffix: Values) -> list[str]:
        """Write a short string or array in one call with the runs around it."""
        field = step.field
        bias = 1 if field.is_compact else 0
        code = length_code(field)
        table = self.formats.packers(
            [each for each, _ in prefix], code, step.code, [each for each, _ in suffix], bias
        )
        spread = f"*{payload}" if step.kind == "numbers" else payload
        length = "n + 1" if field.is_compact else "n"
        values = [arguments(prefix), length, spread, arguments(suffix)]
        call = f"{table}[n]({', '.join(value for value in values if value)})"
        if step.kind == "numbers":
            long = f'long_numbers({payload}, "{step.code}")'
        else:
            long = f"long_text({payload})" if field.is_compact else payload
        has_length = step.kind == "text" and field.is_compact
        return [
            f"if n < {128 - bias}:",
            f"{INDENT}{self.out}({call})",
            "else:",
            *indent(self._run(prefix) if has_length else self._length(step, prefix, is_long=True)),
            f"{INDENT}{self.out}({long})",
            *indent(self._run(suffix)),
        ]

    def _length(self, step: Payload, prefix: Values, is_long: bool = False) -> list[str]:
        """Write the run before a payload and its length `n`."""
        if not step.field.is_compact:
            return self._run([*prefix, (length_code(step.field), "n")])
        long = [*self._run(prefix), f"{self.out}(varint(n + 1))"]
        if is_long:
            return long
        return [
            "if n < 127:",
            *indent(self._run([*prefix, *SHORT_COUNT])),
            "else:",
            *indent(long),
        ]

    def _one(self, step: Payload, prefix: Values) -> list[str]:
        """Write one struct, with the marker in front where it may be null."""
        field = step.field
        assert field.struct is not None
        value = f"item.{field.name}"
        call = f"{self.plan.one(field.struct)}({step.local}, {self.out})"
        if not field.is_nullable and self.is_never_null:
            return [*self._run(prefix), call]
        if not field.is_nullable:
            return [*self._run(prefix), f"{step.local} = {value}", call]
        code, null = ("b", "-1") if field.tag < 0 else ("B", "0")
        if self.is_never_null:
            return [*self._run([*prefix, (code, "1")]), call]
        return [
            f"{step.local} = {value}",
            f"if {step.local} is None:",
            *indent(self._run([*prefix, (code, null)])),
            "else:",
            *indent(self._run([*prefix, (code, "1")])),
            f"{INDENT}{call}",
        ]


def length_code(field: FieldLayout) -> str:
    """Return the format of a field's length."""
    if field.is_compact:
        return "B"
    return "h" if field.kind == "string" and not field.is_array else "i"


def arguments(values: Values) -> str:
    """Spell the arguments of a run; zero bytes take none."""
    return ", ".join(expression for _, expression in values if expression)


def spelled_bytes(values: Values) -> str:
    """Spell the bytes of a run of constants as a literal."""
    numbers = [int(expression) for _, expression in values if expression]
    packed = Struct(">" + "".join(code for code, _ in values)).pack(*numbers)
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in packed) + '"'


def without_repeated_annotations(lines: list[str]) -> list[str]:
    """Annotate `parts` where it is first assigned only, as mypy wants it."""
    seen = False
    kept = []
    for line in lines:
        if line.strip() == "parts: list[Part] = []" and seen:
            line = line.replace(": list[Part]", "")
        seen = seen or line.strip() == "parts: list[Part] = []"
        kept.append(line)
    return kept
