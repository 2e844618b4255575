"""A server.properties as both makes read it, and where they differ."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kraft_wire.node.config.node_config import ConfigError, NodeConfig, Setting, load_config
from kraft_wire.settings.broker import BROKER_KEYS, OWN_DEFAULTS
from kraft_wire.settings.node_settings import topic_values
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import format_value
from tests.apache.java_process import JavaFailed, java_command

__all__ = ["Difference", "answers_of_apache", "differences"]

Entries = Mapping[str, str]

_LISTED_BY_APACHE_ONLY: Final = (
    (r"contains invalid addresses : \[::1\]$", "an address in brackets"),
    (r"must have a different port|same port then one needs", "two addresses with one port"),
    (r"at least one broker advertised listener", "an empty value is none"),
    (r"must be a listener name defined in advertised.listeners", "all listeners are advertised"),
)
"""What 4.3.1 refuses and we take, each with what is meant."""
_LISTED_BY_US_ONLY: Final = (
    (r"=[^:]*[^\x00-\x7f].*Not a number of type", "digits of Unicode"),
    (r"=(NaN|Infinity|0x1p1): Not a number of type DOUBLE$", "no numbers, and hexadecimal ones"),
    (r"NAME://host:port$|is not (id@)?host:port$", "ports and ids that no socket can have"),
    (r"is listed twice$", "one voter with two addresses"),
    (r":: is not an address that clients|listens on all addresses", "[::] is no address to reach"),
    (r"^authorizer\.class\.name=", "classes of Java"),
)
_TIME_MS_ANY: Final = "retention.ms"
"""Below 0 it is shown as -1 by 4.3.1, and as it was written by us; both mean without limit."""


class Difference(NamedTuple):
    """Where the makes do not agree about the entries of one file."""

    what: str
    entries: Entries
    ours: object
    apaches: object


def answers_of_apache(files: Sequence[Entries]) -> list[dict[str, Any]]:
    """Return what 4.3.1 makes of each file (`judge.ServerProperties`)."""
    done = subprocess.run(
        java_command("judge.ServerProperties"),
        input="".join(json.dumps(file) + "\n" for file in files),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise JavaFailed(done.stderr[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(entries: Entries, apaches: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield where we do not read a file as 4.3.1 does, but for what is listed above."""
    settings = {key: Setting(text, "file") for key, text in entries.items()}
    try:
        config = load_config(settings, {}, file_name="file", host_name=lambda: "machine")
    except ConfigError as refusal:
        words = str(refusal).removeprefix("file: ")
        if "error" not in apaches and not _is_listed(words, _LISTED_BY_US_ONLY):
            yield Difference("only we refuse it", entries, words, None)
        return
    if "error" in apaches:
        words = str(apaches["error"])
        if not _is_listed(words, _LISTED_BY_APACHE_ONLY):
            yield Difference("only 4.3.1 refuses it", entries, None, words)
        return
    yield from _different_values(entries, config, apaches)
    yield from _different_listeners(entries, config, apaches)


def _is_listed(words: str, listed: Sequence[tuple[str, str]]) -> bool:
    return any(re.search(pattern, words) for pattern, _ in listed)


def _different_values(
    entries: Entries, config: NodeConfig, apaches: Mapping[str, Any]
) -> Iterator[Difference]:
    for key, text in apaches["values"].items():
        is_own_default = key in OWN_DEFAULTS and key not in entries
        ours = format_value(config.settings.value(key)) if key in BROKER_KEYS else text
        if ours != text and not is_own_default:
            yield Difference(f"value of {key}", entries, ours, text)
    defaults = topic_values({}, config.settings)
    for key, text in apaches.get("topic", {}).items():
        ours = format_value(defaults[key]) if key in TOPIC_KEYS else text
        is_unlimited = key == _TIME_MS_ANY and text == "-1" and str(ours).startswith("-")
        if ours != text and not is_unlimited:
            yield Difference(f"default of {key}", entries, ours, text)


def _different_listeners(
    entries: Entries, config: NodeConfig, apaches: Mapping[str, Any]
) -> Iterator[Difference]:
    bound = [[each.name, each.protocol, each.host, each.port] for each in config.all_listeners]
    shown = {}
    if config.is_controller:
        shown["controllers"] = list(config.controller_listeners)
    if config.is_broker:
        told = [name for name, *_ in apaches["advertised"]]
        shown["advertised"] = [each for each in config.listeners if each.name in told]
    if sorted(bound) != sorted(_endpoints(apaches["listeners"], "0.0.0.0")):
        yield Difference("bound listeners", entries, bound, apaches["listeners"])
    for what, listeners in shown.items():
        ours = [
            [each.name, each.protocol, each.advertised_host, each.advertised_port]
            for each in listeners
        ]
        if sorted(ours) != sorted(_endpoints(apaches[what], "machine")):
            yield Difference(f"{what} listeners", entries, ours, apaches[what])


def _endpoints(found: Sequence[Sequence[Any]], host: str) -> list[list[Any]]:
    """Return endpoints with `host` where 4.3.1 has none yet."""
    return [[name, protocol, given or host, port] for name, protocol, given, port in found]
