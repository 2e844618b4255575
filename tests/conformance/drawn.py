"""Drawn requests at a broker, and Apache Kafka's recorded answers to the same requests.

`python -m tests.conformance.drawn` records them; `make record-apache` does too.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.conformance.case import Listener
from kraft_wire.conformance.connection import split_address
from kraft_wire.conformance.drawn.sequence import drawn_cases
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.recording import Recording
from kraft_wire.conformance.run import rows_of, run_rows
from kraft_wire.conformance.target import learn_target
from tests.apache.node import ApacheNode
from tests.conformance.judged_nodes import PROFILE

__all__ = ["DRAWN_RECORDING", "SEEDS", "drawn_answers", "record_drawn"]

SEEDS = range(48)
REQUESTS = 120
DRAWN_RECORDING = Path(__file__).with_name("apache-4.3.1-drawn.jsonl.gz")


def drawn_answers(address: str, seeds: range, requests: int = REQUESTS) -> Recording:
    """Send the sequences of the seeds and keep the exchanges."""
    profile = read_profile(PROFILE)
    rows = rows_of(drawn_cases(seeds, requests, profile), profile)
    targets = {Listener.BROKER: learn_target(split_address(address), 10.0)}
    outcomes = run_rows(rows, targets, keeps_exchanges=True)
    assert [each.name for each in outcomes if each.verdict != "passed"] == []
    return Recording.of(outcomes, address, PROFILE)


def record_drawn() -> None:
    """Write the recording of all seeds."""
    with TemporaryDirectory() as directory:
        node = ApacheNode(Path(directory))
        node.format()
        node.start()
        try:
            found = drawn_answers(node.bootstrap, SEEDS)
        finally:
            node.stop()
    found.write(DRAWN_RECORDING)
    print(f"{DRAWN_RECORDING}: {len(found.rows)} rows, {DRAWN_RECORDING.stat().st_size:,} bytes")


if __name__ == "__main__":
    record_drawn()
