"""The check that the extra `columnar` is installed, made once, before anything else is imported.

A node does not import this: it needs neither numpy nor pyarrow.
"""

from importlib.util import find_spec

from kraft_wire.extras import install_command

__all__ = ["MissingExtra", "require"]


class MissingExtra(ImportError):
    """A package of an extra is not installed; the message has the command that installs it."""


def require(extra: str, *packages: str) -> None:
    """Raise MissingExtra, naming the packages, where one of them cannot be imported."""
    missing = [package for package in packages if not _is_installed(package)]
    if missing:
        remedy = install_command(extra, missing)
        raise MissingExtra(f"{' and '.join(missing)} not installed: {remedy}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a spec: None in sys.modules hides the package
        return False


require("columnar", "numpy", "pyarrow")
