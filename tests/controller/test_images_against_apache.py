"""Random histories of a cluster give the image that Apache's own classes make of them."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_wire.controller.image import MetadataImage
from kraft_wire.controller.loader import MetadataLoader
from kraft_wire.controller.records import decode_record, encode_record
from kraft_wire.controller.replay import REPLAYERS
from tests.apache import jars
from tests.controller.random_records import History

HISTORIES = 40
RECORDS = 120
PER_IMAGE = 30
"""Apache's image is remade after so many records: changes of old things are then seen too."""


def comparable(image: MetadataImage) -> MetadataImage:
    """Return an image without the place in the log that it stands for."""
    return replace(image, offset=0, epoch=0, finalized_features_epoch=0)


@pytest.mark.java
def test_image_of_a_random_history_is_apaches() -> None:
    histories = [History(seed) for seed in range(HISTORIES)]
    lines: list[str] = []
    for history in histories:
        history.grow(RECORDS)
        for number, record in enumerate(history.records):
            lines.append(encode_record(record).hex())
            # Apache's delta forgets a credential that follows the removal of a mechanism's last
            # one within the same delta, so each of these records gets a delta of its own.
            if number % PER_IMAGE == PER_IMAGE - 1 or "Scram" in record.record.NAME:
                lines.append("-")
        lines.append("")
    source = Path(__file__).with_name("ImageJudge.java")
    done = subprocess.run(
        ["java", "-cp", jars.classpath(), str(source)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    snapshots = done.stdout.split("\n\n")[:HISTORIES]
    for history, snapshot in zip(histories, snapshots, strict=True):
        records = [decode_record(bytes.fromhex(line)).record for line in snapshot.split()]
        theirs = MetadataLoader().replay_snapshot(records, 1, 1)
        assert comparable(history.image) == comparable(theirs)
    used = {each.record.RECORD_TYPE for history in histories for each in history.records}
    assert used == set(REPLAYERS) - {21}, "every record but ZooKeeper's, which no snapshot holds"
