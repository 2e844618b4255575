"""`--property key=value` as Kafka's console tools take it: a known key, a value, a default."""

from collections.abc import Sequence

from kraft_wire.cli.output import WrongInput
from kraft_wire.cli.suggestions import unknown_name

__all__ = ["pairs_of", "properties_of"]


def pairs_of(texts: Sequence[str]) -> dict[str, str]:
    """Read `key=value` pairs. Errors: WrongInput."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise WrongInput(f'"{text}" is not of the form key=value')
        pairs[key.strip()] = value
    return pairs


def properties_of(texts: Sequence[str], defaults: dict[str, str]) -> dict[str, str]:
    r"""Return the defaults with the given values; `\t` in a value is a tab. Errors: WrongInput."""
    given = pairs_of(texts)
    for key in given:
        if key not in defaults:
            raise WrongInput(unknown_name("property", key, defaults))
    return defaults | {key: value.replace("\\t", "\t") for key, value in given.items()}
