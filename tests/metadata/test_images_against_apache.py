"""Random histories of a cluster give the image that Apache's own classes make of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_record, encode_record
from kraft_wire.metadata.replay import REPLAYERS
from tests.apache.source_judge import answers_of
from tests.metadata.random_records import History

HISTORIES = 40
OLD_LEVELS = [7, 8, 10, 11, 14, 15, 17, 22, 23, 29]
RECORDS = 120
PER_IMAGE = 30
"""Apache's image is remade after so many records: changes of old things are then seen too."""


def comparable(image: MetadataImage) -> MetadataImage:
    """Return an image without the place in the log that it stands for."""
    return replace(image, offset=0, epoch=0, finalized_features_epoch=0)


def log_lines(history: History) -> list[str]:
    """Return what the judge reads for the log of one history."""
    lines = []
    for number, record in enumerate(history.records):
        lines.append(encode_record(record).hex())
        # Apache's delta forgets a credential that follows the removal of a mechanism's last
        # one within the same delta, and keeps the first configuration of a topic that the same
        # delta removes, so each of these records gets a delta of its own.
        if number % PER_IMAGE == PER_IMAGE - 1 or record.record.RECORD_TYPE in (4, 11, 22):
            lines.append("-")
    return [*lines, ""]


def judged(lines: list[str]) -> list[str]:
    """Return the paragraphs that Apache's classes answer."""
    return answers_of(Path(__file__).with_name("ImageJudge.java"), lines, heap="1g").split("\n\n")


def without_quotas(lines: list[str]) -> list[str]:
    """Return records that must agree byte for byte: entities are a hash table's order in Apache."""
    return sorted(line for line in lines if not line.startswith("010e"))


@pytest.mark.java
def test_image_of_a_random_history_is_apaches_and_so_is_its_snapshot() -> None:
    histories = [History(seed) for seed in range(HISTORIES)]
    histories += [History(seed, level) for seed, level in enumerate(OLD_LEVELS * 2, HISTORIES)]
    lines: list[str] = []
    for history in histories:
        history.grow(RECORDS)
        lines += log_lines(history)
        lines += [value.hex() for value in snapshot_values(history.image)]
        lines.append("=")
    answers = judged(lines)
    for number, history in enumerate(histories):
        snapshot, verdict = answers[2 * number : 2 * number + 2]
        records = [decode_record(bytes.fromhex(line)).record for line in snapshot.split()]
        theirs = MetadataLoader().replay_snapshot(records, 1, 1)
        assert comparable(history.image) == comparable(theirs)
        ours = [value.hex() for value in snapshot_values(theirs)]
        assert without_quotas(ours) == without_quotas(snapshot.split())
        assert verdict == "equal", verdict
    used = {each.record.RECORD_TYPE for history in histories for each in history.records}
    assert used == set(REPLAYERS) - {21}, "every record but ZooKeeper's, which no snapshot holds"
