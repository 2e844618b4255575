"""`cordoned.log.dirs`: log directories that get no new replicas (KIP-1066).

A directory is named as in `log.dirs`, and `*` stands for all. A broker refuses other names, because
no controller knows its paths (`node.config.node_config`, `node.requests.own_settings`).
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["CORDONED_KEY", "cordoned_problem", "is_cordoned"]

CORDONED_KEY: Final = "cordoned.log.dirs"
_ALL: Final = "*"


def is_cordoned(settings: NodeSettings, path: str) -> bool:
    """Return whether a log directory gets no new replicas."""
    listed = settings.strings(CORDONED_KEY)
    return path in listed or _ALL in listed


def cordoned_problem(cordoned: Sequence[str], log_dirs: Sequence[str]) -> str | None:
    """Return why a broker with these directories refuses a list, in 4.3.1's words; None if not."""
    if _ALL in cordoned:
        words = f"When {CORDONED_KEY} is set to {_ALL}, it must not contain other values"
        return words if len(cordoned) > 1 else None
    unknown = [each for each in cordoned if each not in log_dirs]
    if not unknown:
        return None
    return (
        f"All entries in {CORDONED_KEY} must be present in log.dirs or log.dir. "
        f"Missing entries : {', '.join(unknown)}"
    )
