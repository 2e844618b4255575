"""`python -m tests.pythons`: `make test` on each Python that is supported and found here.

Each interpreter gets a virtual environment of its own. One that is missing is named and left out.
Exit code 0 when every one that was found passes and there was one.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.everything import OF_MAKE

CHECKOUT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = Path(".venv", "pythons")


def supported() -> list[str]:
    """The versions that the package's classifiers name."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    heads = [each.rpartition(" :: ") for each in settings["project"]["classifiers"]]
    found = [version for head, _, version in heads if head == "Programming Language :: Python"]
    assert "3.11" in found, found
    return [version for version in found if "." in version]


def version_of(program: str) -> str | None:
    """Major and minor version of an interpreter, None where there is none that starts."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the lane on each interpreter, and print a line for each at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    programs = [f"python{version}" for version in supported()]
    parser.add_argument("interpreters", nargs="*", default=programs, metavar="INTERPRETER")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, metavar="DIRECTORY")
    options = parser.parse_args(arguments)
    verdicts: dict[str, str] = {}
    for program in options.interpreters:
        version = version_of(program)
        if version is None:
            verdicts[program] = "not run: there is no such interpreter here"
            continue
        environment = f"VENV={options.environments / version}"
        done = subprocess.run(
            ["make", "test", f"PYTHON={program}", environment],
            cwd=CHECKOUT,
            env={key: value for key, value in os.environ.items() if key not in OF_MAKE},
            check=False,
        )
        verdicts[program] = "passed" if done.returncode == 0 else "FAILED"
    for program, verdict in verdicts.items():
        print(f"{program}: {verdict}")
    return 0 if "passed" in verdicts.values() and "FAILED" not in verdicts.values() else 1


if __name__ == "__main__":
    sys.exit(main())
