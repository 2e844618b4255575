"""Apache Kafka's recorded answers, which stand in for a JVM; `make record-apache` renews them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.conformance.recording import Recording
from tests.conformance.judged_nodes import apache_node, judged

__all__ = ["RECORDING", "main"]

PROFILE = "apache-4.3"
RECORDING = Path(__file__).with_name("apache-4.3.1.jsonl.gz")


def main() -> None:
    """Judge Apache Kafka, and keep what it answered."""
    with TemporaryDirectory() as scratch, apache_node(Path(scratch)) as node:
        outcomes = judged(node, profile=PROFILE, keeps_exchanges=True)
    Recording.of(outcomes, "Apache Kafka 4.3.1", PROFILE).write(RECORDING)
    print(f"{RECORDING}: {len(outcomes)} rows, {RECORDING.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
