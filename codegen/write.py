"""Render the plans and put the files on disk, or tell which of them differ from the disk.

Only this module needs jinja2. What the templates get is finished: they lay out, they decide
nothing.
"""

import hashlib
import json
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen.notes import check_notes, read_notes
from codegen.plan import ModulePlan, plan_modules
from codegen.spec import MessageSpec, parse_message, read_text
from codegen.tables import plan_registry, plan_tables

__all__ = [
    "differences",
    "open_templates",
    "read_schemas",
    "render_module",
    "render_tree",
    "write_tree",
]

NOTES = "notes.json"
WORD = re.compile(r"\w+")
IMPORTS = {
    "kraft_wire.model": ["ZERO_UUID", "FileSlice", "Uuid"],
    "kraft_wire.wire.message": ["Append", "Buffer", "Message", "Part", "Struct"],
    "kraft_wire.wire.primitives": ["UNSET", "Unusual"],
    "kraft_wire.wire.runtime": [
        "classic_numbers",
        "classic_text",
        "classic_texts",
        "compact_numbers",
        "compact_text",
        "compact_texts",
        "long_count",
        "long_numbers",
        "long_text",
        "new",
        "one_byte",
        "packers",
        "size_of",
        "tag_head",
        "unknown_tag",
        "unknown_tags",
        "unpackers",
        "varint",
        "write_classic_texts",
        "write_compact_texts",
        "write_tags",
    ],
}


def read_schemas(schemas: Path) -> list[tuple[MessageSpec, str]]:
    """Read all canonical schema files, each with the line that names it in generated code."""
    found = []
    for path in sorted(schemas.glob("*/*.json")):
        text = read_text(path)
        name = path.relative_to(schemas.parent).as_posix()
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        found.append((parse_message(text, name), f"{name} sha256 {sha256}"))
    return found


def render_tree(schemas: Path) -> dict[str, str]:
    """Return the text of every generated file by its path below `wire/generated`."""
    environment = open_templates()
    release = read_text(schemas / "VERSION").split("\n")[0]
    messages = read_schemas(schemas)
    notes = read_notes(schemas / NOTES)
    check_notes(notes, [spec for spec, _ in messages], f"{schemas.name}/{NOTES}")
    modules = plan_modules(messages, notes)
    tree = {
        "__init__.py": package_text("Generated codecs; `registry` finds them."),
        "tables/__init__.py": package_text("Generated field tables."),
    }
    for module in modules:
        tree[f"{module.name}.py"] = render_module(environment, module)
        tree[f"tables/{module.name}.py"] = environment.get_template("tables.py.j2").render(
            module=module, messages=plan_tables(module)
        )
    tree["messages.py"] = environment.get_template("messages.py.j2").render(
        release=release, entries=plan_registry(modules)
    )
    tree["registry.py"] = environment.get_template("registry.py.j2").render(release=release)
    errors = read_text(schemas / "errors.json")
    rows = json.loads(errors)
    tree["error_code.py"] = environment.get_template("error_code.py.j2").render(
        release=release,
        errors=rows,
        texts={row["name"]: json.dumps(row["message"]) for row in rows},
        sha256=hashlib.sha256(errors.encode()).hexdigest(),
    )
    return tree


def open_templates() -> Environment:
    """Open the templates; a name that is missing in one stops the rendering."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the output is Python
    )


def package_text(summary: str) -> str:
    """Return an `__init__.py` that exports nothing."""
    return f'"""{summary}"""\n\n__all__: list[str] = []\n'


def render_module(environment: Environment, module: ModulePlan) -> str:
    """Render one module; its imports are those whose names its text uses."""
    exports = sorted(f'"{planned.name}"' for planned in module.classes)
    template = environment.get_template("module.py.j2")
    body = template.render(module=module, exports=exports, imports=[])
    return template.render(module=module, exports=exports, imports=plan_imports(body))


def plan_imports(body: str) -> list[str]:
    """Return the import lines that a module's text needs."""
    words = set(WORD.findall(body))
    lines = ["from struct import Struct as Codec", ""] if "Codec" in words else []
    for module, names in IMPORTS.items():
        used = [name for name in names if name in words]
        if used:
            lines += import_lines(module, used)
    return lines


def import_lines(module: str, names: list[str]) -> list[str]:
    """Return one import, a name per line where it is long."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def write_tree(tree: dict[str, str], target: Path) -> None:
    """Make the directory hold exactly the tree; unchanged files keep their time stamps."""
    for path in differences(tree, target):
        if path in tree:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(tree[path])
        else:
            (target / path).unlink()


def differences(tree: dict[str, str], target: Path) -> list[str]:
    """Name the files that are missing, stale or left over on disk."""
    on_disk = {path.relative_to(target).as_posix(): path for path in target.rglob("*.py")}
    changed = [
        path
        for path, text in tree.items()
        if path not in on_disk or on_disk[path].read_text() != text
    ]
    return sorted({*changed, *(on_disk.keys() - tree.keys())})
