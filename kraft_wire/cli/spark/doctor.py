"""What `kraft-wire spark` needs of a machine, one by one, each with the line that repairs it.

It imports none of the packages that it checks, so that it runs even if Java, pyspark or pandas is
missing or has a wrong version. The bounds are those of the extra `spark` and of Spark 4 itself.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from kraft_wire.extras import install_command

__all__ = ["Check", "examine", "missing", "needed"]

_JAVA_LEAST: Final = 17
_JAVA_SECONDS_MAX: Final = 30
_JAVA_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_PACKAGES: Final = {
    "pyspark": ((4, 2), (4, 4)),
    "pandas": ((2, 2), (3,)),
    "pyarrow": ((18,), None),
    "numpy": ((2,), None),
}
_CONNECTOR: Final = (
    "spark-sql-kafka-0-10_2.13",
    "spark-token-provider-kafka-0-10_2.13",
    "kafka-clients",
    "commons-pool2",
)
_INTERPRETERS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


class Check(NamedTuple):
    """One requirement."""

    name: str
    found: str
    is_well: bool
    remedy: str = ""
    """The command that repairs it, or another instruction."""


def examine(jars: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> list[Check]:
    """Return every check, well or not, in the order in which they are to be repaired."""
    return [*needed(jars, environment), _interpreter(environment)]


def needed(jars: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> list[Check]:
    """Return the checks without which no verb runs; the workers' interpreter a verb sets itself."""
    packages = [_package(name) for name in _PACKAGES]
    return [_java(environment), *packages, *_jars(jars)]


def missing(checks: Sequence[Check]) -> Iterator[str]:
    """Yield one line for each check that is not well."""
    for check in checks:
        if not check.is_well:
            yield f"{check.name}: {check.found}; {check.remedy}"


def _java(environment: Mapping[str, str]) -> Check:
    home = environment.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    install = "apt-get install openjdk-17-jre-headless, or point JAVA_HOME to a Java 17 or newer"
    if program is None:
        return Check("java", "not on the PATH, and JAVA_HOME is not set", False, install)
    try:
        done = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_JAVA_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", f"{program} does not run: {error}", False, install)
    match = _JAVA_VERSION.search(done.stderr + done.stdout)
    if match is None:
        return Check("java", f"{program} does not report its version", False, install)
    release = int(match[1]) if match[1] != "1" else int(match[2] or 0)
    return Check("java", f"{release} ({program})", release >= _JAVA_LEAST, install)


def _package(name: str, version_of: Callable[[str], str] = version) -> Check:
    least, below = _PACKAGES[name]
    try:
        found = version_of(name)
    except PackageNotFoundError:
        return Check(name, "not installed", False, install_command("spark", [name]))
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    is_well = numbers >= least and (below is None or numbers < below)
    text = ".".join(map(str, least))
    bounds = f">={text}" if below is None else f">={text},<{'.'.join(map(str, below))}"
    return Check(name, found, is_well, f"pip install '{name}{bounds}'")


def _interpreter(environment: Mapping[str, str]) -> Check:
    """The verbs set it; other ways to start Spark must set it."""
    ours = os.path.realpath(sys.executable)
    others = [environment[name] for name in _INTERPRETERS if environment.get(name)]
    strange = [each for each in others if os.path.realpath(shutil.which(each) or each) != ours]
    remedy = f"export PYSPARK_PYTHON={sys.executable}"
    if strange:
        return Check("workers' interpreter", f"{strange[0]}, not the driver's", False, remedy)
    return Check("workers' interpreter", sys.executable, True, remedy)


def _jars(jars: Sequence[str]) -> Iterator[Check]:
    gone = [jar for jar in jars if not os.path.isfile(jar)]
    for jar in gone:
        yield Check("jars", f"{jar} does not exist", False, "give --jars the paths of jar files")
    lacking = [name for name in _CONNECTOR if not any(name in jar for jar in jars)]
    if not lacking:
        yield Check("jars", f"{len(jars)} given, including Spark's own connector", True)
    elif not gone:
        found = f"{len(jars)} given" if jars else "none given, and none is needed"
        yield Check("jars", f"{found}; --connector kafka needs also {', '.join(lacking)}", True)
