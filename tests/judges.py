"""The availability rule for judges: tools that are not ours and that some tests cannot do without.

A test carries a marker (``java``, ``go``, ``node``, ``kcat``, ``chromium``, ``valgrind``,
``compiler``). If a program that the marker stands for is missing, the test is listed as *not run*
and says which program that is. With ``CI=true`` a missing judge is a failure: a green run there
means that every judge has spoken.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable

PROGRAMS: dict[str, tuple[str, ...]] = {
    "java": ("java", "javac", "mvn"),
    "go": ("go",),
    "node": ("node", "npm"),
    "kcat": ("kcat",),
    "chromium": ("chromium",),
    "valgrind": ("valgrind",),
    "compiler": ("cc",),
}

PACKAGES: dict[str, tuple[str, ...]] = {
    "java": ("default-jdk-headless", "maven"),
    "go": ("golang-go",),
    "node": ("nodejs", "npm"),
    "kcat": ("kcat",),
    "chromium": ("chromium",),
    "valgrind": ("valgrind",),
    "compiler": ("gcc", "python3-dev"),
}
"""What Debian and its kin call them; `.ci/run` installs the same."""

NOT_RUN = "not run: "
"""How the reason of a skip begins where a judge is missing."""

Which = Callable[[str], str | None]


def missing_programs(judges: Iterable[str], which: Which = shutil.which) -> list[str]:
    """The programs that the named judges need and that are not on the PATH, in table order."""
    wanted = set(judges)
    assert wanted <= PROGRAMS.keys(), f"unknown judge among {sorted(wanted)}"
    return [
        program
        for judge, programs in PROGRAMS.items()
        if judge in wanted
        for program in programs
        if which(program) is None
    ]


def judges_are_required() -> bool:
    """Whether a missing judge is a failure here."""
    return os.environ.get("CI", "").lower() == "true"


def not_run_reason(missing: list[str]) -> str:
    """What the list of tests that were not run says about one of them."""
    assert missing
    return f"{NOT_RUN}{', '.join(missing)} missing"


def is_not_run(reason: str) -> bool:
    """Whether a test was skipped for this reason because it lacks a judge."""
    return reason.startswith(NOT_RUN)


def how_to_get(judge: str) -> str:
    """Return one line with the judge's programs and the command that installs them."""
    programs = PROGRAMS[judge]
    if not missing_programs([judge]):
        return f"{', '.join(programs)}: present"
    return f"{', '.join(programs)}: apt-get install {' '.join(PACKAGES[judge])}"
