"""Rules as documents: read from a YAML or JSON file or an HTTP request, and written as JSON.

A rule is an object with one effect, the selection of its requests, and `when`:

    {inject_error: NOT_LEADER_OR_FOLLOWER, api: Produce, topic: orders, when: {times: 3}}
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kraft_wire.foreign_text import json_value
from kraft_wire.testing.faults.injecting import error_code_of
from kraft_wire.testing.faults.rule import (
    Effect,
    Fault,
    Rule,
    Selector,
    When,
    every_time,
    on_call,
    once,
    times,
    with_probability,
)
from kraft_wire.wire.error_names import error_name

__all__ = ["InvalidRule", "RuleDocument", "read_rules", "rule_of", "rule_to_document", "rules_of"]

_EFFECTS: Final = {each.value: each for each in Effect}
_SELECTING: Final[dict[str, type]] = {
    "api": str,
    "client_id": str,
    "topic": str,
    "partition": int,
    "node": int,
}
_VERSIONS: Final = re.compile(r"(\d+)(?:-(\d+))?")
_WITH_SECONDS: Final = (Effect.DELAY, Effect.THROTTLE)
_AFTER_HANDLING: Final = (Effect.DISCONNECT, Effect.DELAY, Effect.BLACKHOLE)


class InvalidRule(ValueError):
    """A document that is not a rule; the text is one line."""


class RuleDocument(NamedTuple):
    """A rule that is not in force yet."""

    fault: Fault
    selector: Selector
    when: When


def read_rules(text: str) -> list[RuleDocument]:
    """Return the rules of a file, YAML where PyYAML is installed. Errors: InvalidRule."""
    try:
        import yaml
    except ImportError:
        loads: Callable[[str], object] = json_value
        refusals: tuple[type[Exception], ...] = (ValueError,)
        hint = "; install PyYAML for rules in YAML"
    else:
        loads, refusals, hint = yaml.safe_load, (yaml.YAMLError, RecursionError), ""
    try:
        document = loads(text)
    except refusals as error:
        reason = " ".join(str(error).split())
        raise InvalidRule(f"the rules cannot be read: {reason}{hint}") from error
    return rules_of(document)


def rules_of(document: object) -> list[RuleDocument]:
    """Return the rules of a list, or the one of an object. Errors: InvalidRule."""
    entries = document if isinstance(document, list) else [document]
    return [rule_of(each, f"rule {number}") for number, each in enumerate(entries, start=1)]


def rule_of(entry: object, place: str) -> RuleDocument:
    """Return one rule. Errors: InvalidRule, with `place` in front."""
    if not isinstance(entry, Mapping):
        raise InvalidRule(f"{place}: {entry!r} is not an object with an effect")
    try:
        return _rule_of(entry)
    except ValueError as error:
        raise InvalidRule(f"{place}: {error}") from error


def _rule_of(entry: Mapping[object, object]) -> RuleDocument:
    named = [_EFFECTS[each] for each in entry if isinstance(each, str) and each in _EFFECTS]
    if len(named) != 1:
        raise ValueError(f"expected one effect of {', '.join(_EFFECTS)}")
    effect = named[0]
    known = {effect.value, "versions", "when", "after_handling", *_SELECTING}
    unknown = [str(each) for each in entry if each not in known]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    chosen = {name: _typed(entry, name, kind) for name, kind in _SELECTING.items()}
    if effect is Effect.CORRUPT_RECORDS and chosen["api"] is None:
        chosen["api"] = "Fetch"
    versions = _versions(entry["versions"]) if "versions" in entry else Selector().versions
    selector = Selector(versions=versions, **chosen)  # type: ignore[arg-type]  # checked by _typed
    return RuleDocument(_fault(effect, entry), selector, _when(entry.get("when", "every_time")))


def _typed(entry: Mapping[object, object], name: str, kind: type) -> object:
    value = entry.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ValueError(f"{name}: {value!r} is not a {'string' if kind is str else 'number'}")
    return value


def _fault(effect: Effect, entry: Mapping[object, object]) -> Fault:
    value, after_handling = entry[effect.value], entry.get("after_handling", False)
    if not isinstance(after_handling, bool):
        raise ValueError(f"after_handling: {after_handling!r} is neither true nor false")
    if after_handling and effect not in _AFTER_HANDLING:
        raise ValueError(f"after_handling is not possible with {effect.value}")
    if effect is Effect.INJECT_ERROR:
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ValueError(f"inject_error: {value!r} is not the name of an error")
        return Fault(effect, error_code=error_code_of(value))
    is_flag = value is None or value is True  # not by equality: True == 1, which is a number
    number = 0 if is_flag else _number(effect.value, value)
    if effect in _WITH_SECONDS:
        return Fault(effect, seconds=number, after_handling=after_handling)
    return Fault(effect, size_bytes=int(number), after_handling=after_handling)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name}: {value!r} is not a number of 0 or more")
    return value


def _versions(value: object) -> tuple[int, int]:
    """Read `5`, or the text `3-13`."""
    found = _VERSIONS.fullmatch(str(value))
    if found is None:
        raise ValueError(f"versions: {value!r} is neither a version nor a range like 3-13")
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        raise ValueError(f"versions: {value!r} ends before it begins")
    return first, last


def _when(value: object) -> When:
    """Read `once`, `every_time`, or an object with `times`, `on_call` or `with_probability`."""
    if value == "once":
        return once()
    if value == "every_time":
        return every_time()
    if isinstance(value, Mapping):
        content = dict(value)
        seed = content.pop("seed", 0)
        if len(content) == 1 and isinstance(seed, int):
            ((name, number),) = content.items()
            if name in ("times", "on_call") and isinstance(number, int):
                return times(number) if name == "times" else on_call(number)
            if name == "with_probability" and isinstance(number, int | float):
                return with_probability(number, seed)
    raise ValueError(
        f"when: {value!r} is none of once, every_time, {{times: 3}}, {{on_call: 2}}, "
        "{with_probability: 0.1, seed: 7}"
    )


def rule_to_document(rule: Rule) -> dict[str, object]:
    """Return a rule and its count of firings, for people and other languages."""
    fault, selector = rule.fault, rule.selector
    value: object = True
    if fault.effect is Effect.INJECT_ERROR:
        value = error_name(fault.error_code)
    elif fault.effect in _WITH_SECONDS:
        value = fault.seconds
    elif fault.effect is Effect.TRUNCATE_RESPONSE:
        value = fault.size_bytes
    chosen = {
        name: getattr(selector, name) for name in _SELECTING if getattr(selector, name) is not None
    }
    return {"number": rule.number, "fired": rule.fired, fault.effect.value: value, **chosen}
