"""Errors of the operating system as one line for a person: the file and the reason."""

__all__ = ["system_refusal"]


def system_refusal(error: OSError) -> str:
    """Return place and reason, without the number and the quotes of Python's own text."""
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror or error}"
