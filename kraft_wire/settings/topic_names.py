"""The rules for topic names (KIP-4; the rule of Kafka's `Topic` class).

A name becomes part of a directory's name and of metrics, where `.` and `_` look the same. So the
length, the characters and collisions are limited.
"""

import re
from typing import Final

__all__ = ["METADATA_TOPIC", "TOPIC_NAME_LENGTH_MAX", "collision_form", "topic_name_problem"]

TOPIC_NAME_LENGTH_MAX: Final = 249
METADATA_TOPIC: Final = "__cluster_metadata"

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Return why a topic may not have this name, in Kafka's words, or None."""
    problem = None
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length 249"
    elif not _LEGAL.fullmatch(name):
        problem = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None if problem is None else f"Topic name is invalid: {problem}"


def collision_form(name: str) -> str:
    """Return the form in which two names that collide in metrics are equal."""
    return name.replace(".", "_")
