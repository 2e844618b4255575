"""`python -m tests.fuzz [--target NAME] [--seconds N] [--json]`: coverage-guided fuzzing.

Each target runs in a process of its own under libFuzzer (through atheris), for its share of the
time. The corpus grows in var/fuzz; a finding is kept beside it with the line that replays it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.fuzz.seeds import write_seeds
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parents[2] / "var" / "fuzz"
HANG_S = 10
MEMORY_MIB = 1024


@dataclass
class Outcome:
    """What one target's run found."""

    target: str
    executions: int
    executions_per_second: int
    coverage: int
    corpus: int
    peak_mib: int
    finding: str


def number(pattern: str, text: str) -> int:
    """Return the last number that a pattern finds in libFuzzer's output, 0 without one."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run_target(name: str, seconds: int) -> Outcome:
    """Fuzz one target and read libFuzzer's closing lines."""
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    write_seeds(name, corpus)
    command = [sys.executable, "-m", "tests.fuzz.one", name, str(corpus)]
    command += [f"-max_total_time={seconds}", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MIB}"]
    command += ["-print_final_stats=1", f"-artifact_prefix={CORPUS}/{name}-", "-max_len=65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    finding = ""
    if done.returncode != 0:
        lines = [line for line in text.splitlines() if "Error" in line or "ERROR" in line]
        artifact = re.findall(r"Test unit written to (\S+)", text)
        finding = f"{lines[0] if lines else text[-200:]} {artifact[-1] if artifact else ''}"
    return Outcome(
        name,
        number(r"stat::number_of_executed_units:\s+(\d+)", text),
        number(r"stat::average_exec_per_sec:\s+(\d+)", text),
        number(r"cov: (\d+)", text),
        sum(1 for _ in corpus.iterdir()),
        number(r"stat::peak_rss_mb:\s+(\d+)", text),
        finding,
    )


def outcomes(names: list[str], seconds: int) -> Iterator[Outcome]:
    """Run the targets one after another, each with an equal share of the time."""
    share = max(1, seconds // len(names))
    for name in track(names, "fuzz", console=Console(stderr=True)):
        yield run_target(name, share)


def main() -> int:
    """Return 0 without findings, 1 with one, 2 when the fuzzer is not installed."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    try:
        import atheris  # noqa: F401  # the fuzzer itself runs in a child
    except ImportError:
        print("atheris is missing: make install", file=sys.stderr)
        return 2
    names = [arguments.target] if arguments.target else list(TARGETS)
    results = list(outcomes(names, arguments.seconds))
    if arguments.json:
        print(json.dumps({"targets": [asdict(one) for one in results]}))
    else:
        table = Table("target", "executions", "per s", "coverage", "corpus", "peak MiB", "finding")
        for one in results:
            table.add_row(*map(str, asdict(one).values()))
        Console(width=140).print(table)
        print(f"{sum(one.executions for one in results):,} executions")
    return 1 if any(one.finding for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
