"""The check that the extra `spark` is installed, made once, before anything else is imported."""

from importlib.util import find_spec
from typing import Final

from kraft_wire.extras import install_command

__all__ = ["PACKAGES"]

PACKAGES: Final = ("pyspark", "pandas", "numpy", "pyarrow")
"""The packages of the extra."""


def _require(packages: tuple[str, ...]) -> None:
    """Raise ImportError with the missing packages and the command that installs them."""
    missing = [package for package in packages if not _is_installed(package)]
    if missing:
        remedy = install_command("spark", missing)
        raise ImportError(f"{' and '.join(missing)} not installed: {remedy}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a spec: None in sys.modules hides the package
        return False


_require(PACKAGES)
