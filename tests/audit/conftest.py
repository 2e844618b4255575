"""Every test of this folder closes the files that it opens."""

from tests.open_files import closed_files

__all__ = ["closed_files"]
