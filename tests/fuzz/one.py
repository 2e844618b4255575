"""`python -m tests.fuzz.one TARGET CORPUS [options of libFuzzer]`: fuzzes one target."""

import sys

import atheris

with atheris.instrument_imports(include=["kraft_wire"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Hand the rest of the command line to libFuzzer; does not return."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
