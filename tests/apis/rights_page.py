"""docs/RIGHTS.md: what each API needs, and what 4.3.1 answers to a principal without any right."""

from kraft_wire.apis.api import Api, ListenerType
from kraft_wire.apis.rights import Need
from kraft_wire.apis.rows import ROWS
from kraft_wire.wire.error_names import error_name
from tests.apis.refusals import error_codes, recorded

__all__ = ["rights_page"]

HEAD = """# Rights: what each request needs

{remake}

The rights that Kafka asks for, in this order, and the error that a principal without them gets.
They come before the question whether a thing exists; only unknown topic ids and versions are
refused before. A node with an authorizer enforces this table, which is that of
`kraft_wire/apis/rows.py`: guards (`kraft_wire/node/authorization/`) read rights and errors from it.

"4.3.1 answers" is what Apache Kafka 4.3.1 with `StandardAuthorizer` answered to ANONYMOUS without
any right over plain text, {cells} APIs and versions (`tests/apis/observed/apache_refusals.jsonl`).
"left out": no error; what the right protects is missing from the answer.
"""


def rights_page(remake: str) -> str:
    """Return the page: one table for each kind of listener."""
    cells = list(recorded())
    parts = [HEAD.format(remake=remake, cells=len(cells))]
    for listener, of in (
        (ListenerType.BROKER, "a broker"),
        (ListenerType.CONTROLLER, "a controller"),
    ):
        parts.append(
            f"\n## On the listener of {of}\n\n"
            "| key | API | needs | without | 4.3.1 answers |\n|---|---|---|---|---|\n"
        )
        for api in ROWS:
            if listener in api.listeners:
                seen = {
                    version: sorted(set(error_codes(answer)))
                    for where, name, version, answer in cells
                    if (where, name) == (listener, api.name)
                }
                parts.append(_line(api, listener, seen))
    return "".join(parts)


def _line(api: Api, listener: ListenerType, seen: dict[int, list[int]]) -> str:
    needs = api.needs_on(listener)
    wanted = "<br>".join(map(str, needs)) or "nothing"
    without = "<br>".join(map(_refused, needs)) or "-"
    return f"| {api.key} | {api.name} | {wanted} | {without} | {_answers(seen)} |\n"


def _refused(need: Need) -> str:
    return "left out" if need.refused is None else need.refused.name


def _answers(seen: dict[int, list[int]]) -> str:
    """Return codes with their versions, which are left away where all versions have the same."""
    by_codes: dict[str, list[int]] = {}
    for version, codes in seen.items():
        by_codes.setdefault(", ".join(map(error_name, codes)) or "no error", []).append(version)
    if len(by_codes) == 1:
        return next(iter(by_codes))
    return "<br>".join(
        f"v{versions[0]}-{versions[-1]}: {codes}" for codes, versions in by_codes.items()
    )
