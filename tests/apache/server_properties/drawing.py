"""Entries of a server.properties, drawn around four nodes that start.

Most files have one to three changes. A value is drawn for the kind and the limits of its key, so
that half of all files are accepted. Keys that belong together are drawn together: their checks name
each other.
"""

from collections.abc import Sequence
from random import Random

from kraft_wire.settings.broker import BROKER_KEYS, OWN_KEYS
from kraft_wire.settings.definition import AtLeast, Between, ConfigKey, ConfigKind, ListOf, OneOf
from kraft_wire.settings.values import default_text
from tests.apache.server_properties.pools import (
    BLANK,
    BOOLEANS,
    DOUBLES,
    NODES,
    NOT_DRAWN,
    NUMBERS,
    STRINGS,
    TEXTS,
    TOGETHER,
)

__all__ = ["drawn_entries"]


def drawn_entries(chance: Random) -> dict[str, str]:
    """Draw the entries of one file."""
    entries = dict(chance.choice(NODES))
    names = _names(chance)
    for name in names:
        if chance.random() < 0.04:
            entries.pop(name, None)
        else:
            entries[name] = _value(chance, name)
    return entries


def _names(chance: Random) -> Sequence[str]:
    """Return the keys to change: two or three that belong together, or one or two of all."""
    if chance.random() < 0.6:
        group = chance.choice(TOGETHER)
        return chance.sample(group, min(len(group), chance.choice((1, 2, 2, 3))))
    return chance.sample(_drawable(), chance.choice((1, 1, 2)))


def _drawable() -> list[str]:
    kinds = (ConfigKind.CLASS, ConfigKind.PASSWORD)
    return [
        name
        for name, key in BROKER_KEYS.items()
        if key.kind not in kinds and not name.startswith(NOT_DRAWN) and name not in OWN_KEYS
    ]


def _value(chance: Random, name: str) -> str:
    if name in TEXTS:
        return chance.choice(TEXTS[name])
    key = BROKER_KEYS[name]
    if chance.random() < 0.03:
        return chance.choice(BLANK)
    match key.kind:
        case ConfigKind.BOOLEAN:
            return chance.choice(BOOLEANS)
        case ConfigKind.INT | ConfigKind.LONG | ConfigKind.SHORT:
            return _number(chance, key)
        case ConfigKind.DOUBLE:
            return chance.choice(DOUBLES)
        case _:
            return chance.choice([*STRINGS, *_choices(key)])


def _number(chance: Random, key: ConfigKey) -> str:
    """Return a number, half the time near a limit, the default, or another key's default."""
    if chance.random() < 0.3:
        return chance.choice(NUMBERS)
    near = [default_text(each) for each in (key, BROKER_KEYS[chance.choice(_numbers())])]
    limits = [key.valid.low] if isinstance(key.valid, AtLeast | Between) else []
    limits += [key.valid.high] if isinstance(key.valid, Between) else []
    texts = [text for text in [*near, *map(str, limits)] if text]
    number = float(chance.choice(texts or ["1"]))
    return str(int(number) + chance.choice((-1, 0, 0, 1)))


def _numbers() -> list[str]:
    kinds = (ConfigKind.INT, ConfigKind.LONG, ConfigKind.SHORT)
    return [name for name in _drawable() if BROKER_KEYS[name].kind in kinds]


def _choices(key: ConfigKey) -> Sequence[str]:
    return key.valid.choices if isinstance(key.valid, OneOf | ListOf) else ()
