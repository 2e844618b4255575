"""What an operator does about a log that a simulated node refuses: `kraft-wire repair --cut`.

Power that is lost on a disk that writes out of order, or an fsync that fails, can leave a hole
before valid batches. The product does not cut there by itself (see `storage/recovery/opening.py`):
it names the file, and a person decides. Here that person always cuts.
"""

from kraft_wire.model import TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut

__all__ = ["cut_damage", "directory_of"]


def directory_of(path: str) -> str:
    """Return the log directory of a file in a partition's directory."""
    directory = path.rsplit("/", 2)[0]
    assert directory != path, path
    return directory


def cut_damage(fs: SimFileSystem, directory: str, partition: TopicPartition) -> bool:
    """Cut what is damaged in one log of a stopped node; return whether anything was."""
    found = inspect(fs, directory, partition)
    for damage in found:
        cut(fs, directory, damage)
    return bool(found)
