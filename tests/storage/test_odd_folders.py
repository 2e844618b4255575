"""Folders beside the logs whose names are not those of partitions."""

import pytest

from kraft_wire.model import TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import (
    DELETE_SUFFIX,
    LogDirectory,
    partition_aside,
    partition_of_directory,
)
from kraft_wire.storage.log_config import LogConfig
from tests.storage.making import PARTITION, TOPIC_ID, contents, fill

DIRECTORY = "disk/d"
ID = "0123456789abcdef" * 2


def opened(fs: SimFileSystem) -> LogDirectory:
    directory = LogDirectory.open(fs, DIRECTORY)
    directory.load_logs(lambda _: LogConfig(), 1)
    return directory


@pytest.mark.parametrize("name", ["x-delete", "important-delete", "a-b.c-delete", ".x-delete"])
def test_only_folders_of_deleted_partitions_are_removed(name: str) -> None:
    """Release 4.3.1 does not start with such a folder (UnifiedLog.parseTopicPartitionName)."""
    fs = SimFileSystem()
    opened(fs).release()
    for each in (name, f"t-0.{ID}-delete"):
        fs.make_directory(f"{DIRECTORY}/{each}")
    opened(fs)
    assert fs.exists(f"{DIRECTORY}/{name}")
    assert not fs.exists(f"{DIRECTORY}/t-0.{ID}-delete")


def test_partition_of_a_folder_that_is_to_be_deleted() -> None:
    assert partition_aside(f"a-b.c-3.{ID}-delete", DELETE_SUFFIX) == TopicPartition("a-b.c", 3)
    assert partition_aside(f"t-0.{ID}-stray", DELETE_SUFFIX) is None


def test_a_folder_with_a_leading_zero_is_not_a_second_log_of_its_partition() -> None:
    """Release 4.3.1 reads it as one, and does not start if both exist (LogManager.loadLog)."""
    fs = SimFileSystem()
    directory = opened(fs)
    added = fill(directory.create_log(PARTITION, TOPIC_ID, LogConfig(), 1), 2)
    directory.close()
    fs.make_directory(f"{DIRECTORY}/{PARTITION.topic}-00")
    again = opened(fs)
    assert contents(again.logs[PARTITION]) == added
    assert [*again.logs] == [PARTITION]
    assert partition_of_directory("t-00") is None
