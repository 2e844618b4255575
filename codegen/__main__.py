"""`python -m codegen`: regenerate, check, import a release, or compare two."""

import argparse
import sys
from pathlib import Path

from codegen.diff import diff_table, read_release
from codegen.schema_import import import_release
from codegen.spec import SchemaError

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
TARGET = ROOT / "kraft_wire" / "wire" / "generated"


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; 0 when all is well, 1 when files differ, 2 for a schema that is refused."""
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether files would change")
    verbs = parser.add_subparsers(dest="verb")
    importing = verbs.add_parser("import", help="write schemas/ from a release's jars")
    importing.add_argument("jars", nargs="+", type=Path, metavar="JAR")
    comparing = verbs.add_parser("diff", help="print what changed between two releases")
    comparing.add_argument("old", type=Path, help="schema directory, jar or directory of jars")
    comparing.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.verb == "import":
            print(f"{import_release(options.jars, SCHEMAS)} schemas written to {SCHEMAS}")
            return 0
        if options.verb == "diff":
            print("\n".join(diff_table(read_release(options.old), read_release(options.new))))
            return 0
        return generate(options.check)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return 2


def generate(check: bool) -> int:
    """Write the generated tree, or name the files that would change."""
    from codegen.write import differences, render_tree, write_tree  # the only use of jinja2

    tree = render_tree(SCHEMAS)
    changed = differences(tree, TARGET) if TARGET.exists() else sorted(tree)
    if not check:
        write_tree(tree, TARGET)
        print(f"{len(tree)} files, {len(changed)} of them changed")
        return 0
    for path in changed:
        print(f"{TARGET / path}: differs from what the schemas give, run python -m codegen")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
