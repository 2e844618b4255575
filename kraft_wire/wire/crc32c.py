"""CRC-32C (Castagnoli), the checksum of record batches v2.

One name for the rest of the package, so that only this module depends on the native wheel. Kafka's
older CRC-32 of message formats 0 and 1 is `zlib.crc32`, used in `legacy_batch`.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final

__all__ = ["crc32c"]


def _native() -> Callable[..., int]:
    """Load the wheel's extension without its package.

    The package reads its own version from the installed metadata and imports a command line, which
    takes a fifth of a node's start.
    """
    package = PathFinder.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    spec = None if places is None else PathFinder.find_spec("_crc32c", list(places))
    if spec is None or spec.loader is None:
        from crc32c import crc32c as checksum
    else:
        extension = module_from_spec(spec)
        spec.loader.exec_module(extension)
        checksum = extension.crc32c
    found: Callable[..., int] = checksum
    return found


crc32c: Final = _native()
"""`crc32c(data, value=0)`: the unsigned checksum of a buffer, continuing from `value`."""
