"""The directories of a node: `log.dirs`, `metadata.log.dir` (KIP-631), `cordoned.log.dirs`."""

from collections.abc import Sequence

from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.cordoning import CORDONED_KEY, cordoned_problem
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["metadata_log_dir", "read_log_dirs"]


def read_log_dirs(reader: ConfigReader, *, is_broker: bool) -> tuple[str, ...]:
    """Return `log.dirs`, else `log.dir`, without duplicates; check a broker's cordoned ones."""
    log_dirs = reader.strings("log.dirs") or reader.strings("log.dir")
    if not log_dirs:
        raise reader.error("log.dirs", "at least one directory is required")
    cordoned = reader.settings.strings(CORDONED_KEY) if is_broker else ()
    problem = cordoned_problem(cordoned, log_dirs)
    if problem is not None:
        raise reader.error(CORDONED_KEY, problem)
    return tuple(dict.fromkeys(log_dirs))


def metadata_log_dir(settings: NodeSettings, log_dirs: Sequence[str]) -> str:
    """Return `metadata.log.dir`, as it is spelled in `log.dirs` if it is there; else the first."""
    path = settings.text("metadata.log.dir") or log_dirs[0]
    same = [each for each in log_dirs if each.rstrip("/") == path.rstrip("/")]
    return next(iter(same), path)
