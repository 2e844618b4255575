"""Errors for unknown names: commands, options and keys, with the closest known one."""

from collections.abc import Iterable

__all__ = ["unknown_name"]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return one clause without a period, such as `unknown command "tpics"; did you mean ...?`."""
    from difflib import get_close_matches

    closest = get_close_matches(name, list(known), n=1)
    hint = f'; did you mean "{closest[0]}"?' if closest else ""
    return f'unknown {kind} "{name}"{hint}'
