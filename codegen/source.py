"""Lines of Python: indentation, function heads, and where a long line breaks."""

__all__ = ["INDENT", "function", "indent"]

INDENT = "    "
COLUMNS = 100


def indent(lines: list[str]) -> list[str]:
    """Move lines one level in."""
    return [INDENT + line for line in lines]


def function(name: str, arguments: list[str], result: str, body: list[str]) -> list[str]:
    """Return a function's lines, long heads and assignments broken as a formatter would."""
    head = f"def {name}({', '.join(arguments)}) -> {result}:"
    if len(head) <= COLUMNS:
        return [head, *broken(indent(body))]
    listed = f"{INDENT}{', '.join(arguments)}"
    return [f"def {name}(", listed, f") -> {result}:", *broken(indent(body))]


def broken(lines: list[str]) -> list[str]:
    """Break every line that is too long inside its last pair of brackets or its targets."""
    shorter: list[str] = []
    for line in lines:
        shorter += [line] if len(line) <= COLUMNS else break_line(line)
    return shorter


def break_line(line: str) -> list[str]:
    """Put targets or arguments on lines of their own."""
    margin = line[: len(line) - len(line.lstrip())]
    targets, equals, value = line.strip().partition(" = ")
    if equals and "," in targets and "(" not in targets:
        names = [f"{margin}{INDENT}{name}," for name in targets.split(", ")]
        return [f"{margin}(", *names, f"{margin}) = {value}"]
    if line.endswith("))"):
        start = line.index("(", line.index("(") + 1) + 1
        items = [f"{margin}{INDENT * 2}{item}," for item in line[start:-2].split(", ")]
        outer = line[: line.index("(") + 1]
        inner = line[line.index("(") + 1 : start]
        return [outer, f"{margin}{INDENT}{inner}", *items, f"{margin}{INDENT})", f"{margin})"]
    if line.endswith(":") and " and " in line:
        tests = line.strip().removeprefix("if ").removesuffix(":").split(" and ")
        first, *rest = tests
        joined = [f"{margin}{INDENT}and {test}" for test in rest]
        return [f"{margin}if (", f"{margin}{INDENT}{first}", *joined, f"{margin}):"]
    return [line]
