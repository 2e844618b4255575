"""`python -m tests.attack [--only A05] [--json]`: every attack, as a table.

Those whose ids begin with A are on an open node, those with S on one that asks for logins.

Held for each: the process lives, its memory grows by at most 32 MiB unless a row says otherwise
(it is measured after the attack, so what was freed does not count), the good client beside it is
answered without an error, the attacker gets the expected answer, and a closed connection left its
log line. The good client's 99th percentile is printed against its own baseline, and not
judged, as other work may share the machine.
"""

import argparse
import json
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from tests.attack import frames
from tests.attack.attacks import ATTACKS, Attack
from tests.attack.secured.rows import SECURED_ATTACKS
from tests.attack.secured.target import running_secured_target
from tests.attack.target import GoodClient, Target, read_frame, running_target

BASELINE_S = 2.0


@dataclass
class Outcome:
    """What one attack did."""

    id: str
    title: str
    seen: str
    expected: str
    growth_bytes: int
    peak_growth_bytes: int
    """While the attack lasted, where it looked."""
    p99_ratio: float
    log_line: bool
    failure: str


def warm_up(target: Target) -> None:
    """Create the topic and touch what the first requests allocate for good."""
    record = frames.batch(frames.one_record(b"x" * 100), 1)
    with target.connect() as connection:
        for _ in range(200):
            connection.sendall(frames.metadata_v1(["good"]))
            read_frame(connection)
        for _ in range(200):
            connection.sendall(frames.produce_v3("good", record))
            read_frame(connection)


def judge(attack: Attack, target: Target, client: GoodClient, baseline_s: float) -> Outcome:
    """Run one attack and hold it against its row."""
    log_position = target.log_size()
    before_bytes, target.peak_bytes = target.resident_bytes(), 0
    mark = client.mark()
    failures_before = len(client.failures)
    try:
        seen = attack.run(target)
    except OSError as error:
        seen = f"{type(error).__name__}"
    time.sleep(0.3)
    growth = target.resident_bytes() - before_bytes if target.is_alive() else 0
    log_text = target.log_since(log_position)
    line_found = attack.reason is None or attack.reason in log_text
    failure = ""
    if not target.is_alive():
        failure = "the server is gone"
    elif seen not in attack.expected:
        failure = f"expected {' or '.join(attack.expected)}"
    elif max(growth, target.peak_bytes - before_bytes) > attack.grows_bytes:
        failure = "memory grew"
    elif len(client.failures) > failures_before:
        failure = client.failures[-1]
    elif not line_found:
        failure = f"no log line with {attack.reason}"
    elif "Traceback" in log_text:
        failure = "a traceback in the log"
    ratio = client.p99_since(mark) / baseline_s if baseline_s else 0.0
    return Outcome(
        attack.id,
        attack.title,
        seen,
        " or ".join(attack.expected),
        growth,
        max(0, target.peak_bytes - before_bytes),
        ratio,
        line_found,
        failure,
    )


def run(attacks: list[Attack], running: AbstractContextManager[Target]) -> list[Outcome]:
    """Run the attacks one after another on one server with a good client beside them."""
    outcomes = []
    with running as target:
        warm_up(target)
        client = GoodClient(target)
        client.start()
        time.sleep(BASELINE_S)
        baseline_s = client.p99_since(0)
        for attack in attacks:
            outcome = judge(attack, target, client, baseline_s)
            outcomes.append(outcome)
            print(
                f"{outcome.id:5} {outcome.title:32} "
                f"{f'{outcome.failure}, saw {outcome.seen}' if outcome.failure else 'ok'}",
                file=sys.stderr,
                flush=True,
            )
            if not target.is_alive():
                break
        client.stop()
    return outcomes


def print_table(outcomes: list[Outcome]) -> None:
    """Print the table for people."""
    table = Table(
        *("attack", "", "answer", "memory MiB", "at its peak", "good client p99"),
        *("log line", "verdict"),
    )
    for row in outcomes:
        table.add_row(
            row.id,
            row.title,
            row.seen,
            f"{row.growth_bytes / (1 << 20):+.1f}",
            f"{row.peak_growth_bytes / (1 << 20):+.1f}" if row.peak_growth_bytes else "",
            f"{row.p99_ratio:.1f}x",
            "yes" if row.log_line else "no",
            row.failure or "ok",
        )
    Console(width=130).print(table)


def main() -> int:
    """Return 0 when every attack was held off, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="make attack")
    parser.add_argument("--only", help="ids that begin with this text")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    open_node = running_target(connection_handshake_timeout_ms="4000", num_partitions="1")
    outcomes: list[Outcome] = []
    count = 0
    for table, running in ((ATTACKS, open_node), (SECURED_ATTACKS, running_secured_target())):
        if chosen := [one for one in table if one.id.startswith(arguments.only or "")]:
            outcomes += run(chosen, running)
            count += len(chosen)
    bad = [one for one in outcomes if one.failure] or len(outcomes) < count
    if arguments.json:
        print(json.dumps({"attacks": [asdict(one) for one in outcomes], "ok": not bad}))
    else:
        print_table(outcomes)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
