"""The `struct` formats that a module's functions use, each declared once at the module's top.

A declaration is named for its format, so that generated code reads without looking it up:
`unpack_hiB` reads an int16, an int32 and a length byte.
"""

from dataclasses import dataclass, field

__all__ = ["FIXED_CODES", "FIXED_SIZES", "Formats"]

FIXED_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
FIXED_SIZES = {
    "?": 1,
    "b": 1,
    "B": 1,
    "x": 1,
    "h": 2,
    "H": 2,
    "i": 4,
    "I": 4,
    "q": 8,
    "d": 8,
    "16s": 16,
}


@dataclass(slots=True)
class Formats:
    """Names handed out so far, with the expression that makes each."""

    declared: dict[str, str] = field(default_factory=dict)

    def unpack(self, codes: list[str]) -> str:
        """Name the function that reads a run of fixed-size fields."""
        return self.declare(f"unpack_{spell(codes)}", f'Codec(">{"".join(codes)}").unpack_from')

    def iterate(self, codes: list[str]) -> str:
        """Name the function that reads an array of equal runs."""
        return self.declare(f"iterate_{spell(codes)}", f'Codec(">{"".join(codes)}").iter_unpack')

    def pack(self, codes: list[str]) -> str:
        """Name the function that writes a run of fixed-size fields."""
        return self.declare(f"pack_{spell(codes)}", f'Codec(">{"".join(codes)}").pack')

    def unpackers(self, element: str, suffix: list[str], compact: bool) -> str:
        """Name the table, by length, of functions that read a payload and the run behind it."""
        style = "compact" if compact else "classic"
        arguments = f'"{element}", "{"".join(suffix)}", {int(compact)}'
        return self.declare(
            f"{style}_{element}_{spell(suffix)}".rstrip("_"), f"unpackers({arguments})"
        )

    def packers(
        self, prefix: list[str], length: str, element: str, suffix: list[str], bias: int
    ) -> str:
        """Name the table, by length, of functions that write a run, a payload, and a run."""
        name = f"pack_{spell(prefix)}_{length}{element}_{spell(suffix)}".rstrip("_")
        codes = f'"{"".join(prefix)}{length}", "{element}", "{"".join(suffix)}"'
        position = sum(code != "x" for code in prefix)
        return self.declare(name, f"packers({codes}, {position}, {bias})")

    def declare(self, name: str, expression: str) -> str:
        """Remember a declaration; the same name always stands for the same expression."""
        assert self.declared.setdefault(name, expression) == expression, name
        return name


def spell(codes: list[str]) -> str:
    """Turn format codes into a part of a name."""
    return "".join(codes).replace("?", "t").replace("16s", "u")
