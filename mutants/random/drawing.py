"""Drawing mutants: which places, from a seed, and the names by which they are known.

Every possible change has an identity that does not depend on line numbers: its file, its function,
the lines before and after, and which of equal ones it is. Its rank is a hash of the seed and that
identity, so an edit elsewhere in the tree hardly changes what a seed draws. Packages are drawn from
by the square root of their lines of code, rare kinds of change more often than their share.
"""

import hashlib
import math
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutants.random.operators import Edit, Source
from mutants.random.places import Place, fields_beside, places

__all__ = ["Drawn", "all_mutants", "draw", "equivalents", "is_within", "package_of", "shares"]

EQUIVALENT = Path(__file__).parent.parent / "equivalent.toml"


@dataclass(frozen=True, slots=True)
class Drawn:
    """One possible change of the tree."""

    path: str
    function: str
    """Its qualified name; empty: a module's or a class's own code."""
    operator: str
    line: int
    old: str
    """The lines that are changed, without their margin."""
    new: str
    nth: int
    """Which of the equal changes of its function it is, from 0 on."""
    edit: Edit

    @property
    def id(self) -> str:
        """A short name that stays when other lines move."""
        text = "\0".join(map(str, self.key))
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    @property
    def package(self) -> str:
        """The package that it is in, as reports name it."""
        return package_of(self.path)

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What `equivalent.toml` knows it by."""
        return self.path, self.function, self.old, self.new, self.nth

    def applied(self, text: str) -> str:
        """Return the module's text with the change."""
        return text[: self.edit.start] + self.edit.new + text[self.edit.end :]


def package_of(path: str) -> str:
    """Return the package of a file; `model` for the modules beside the packages."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "model"


def is_within(path: str, packages: Collection[str]) -> bool:
    """Tell whether a file is in one of some packages or modules; without any every file is."""
    beside = path.removeprefix("kraft_wire/").removesuffix(".py")
    return not packages or any(f"{beside}/".startswith(f"{one}/") for one in packages)


def all_mutants(sources: Mapping[str, str], packages: Iterable[str] = ()) -> list[Drawn]:
    """Return every change of some modules, given by path; of some packages, or of all."""
    chosen = frozenset(packages)
    parsed = {path: Source(text) for path, text in sources.items()}
    fields = fields_beside(one.tree for one in parsed.values())
    return [
        one
        for path, source in parsed.items()
        if is_within(path, chosen)
        for one in _named(path, source, places(source, fields))
    ]


def draw(
    sources: Mapping[str, str], seed: int, count: int, packages: Iterable[str] = ()
) -> list[Drawn]:
    """Draw `count` mutants, of all packages or of some; at most one of each line."""
    found: dict[str, list[Drawn]] = {}
    for one in all_mutants(sources, packages):
        found.setdefault(one.package, []).append(one)
    lines = Counter(
        package_of(path) for path, text in sources.items() for _ in range(text.count("\n"))
    )
    lines = Counter({name: lines[name] for name in found})
    drawn: list[Drawn] = []
    for name, share in shares(lines, count).items():
        drawn += _of_package(found[name], seed, share, sources)
    return drawn


def shares(lines: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide `count` among packages by the square root of their lines; the sum is exact."""
    weights = {name: math.sqrt(lines[name]) for name in sorted(lines)}
    total, given, passed = sum(weights.values()), {}, 0.0
    for name, weight in weights.items():
        before = round(passed * count / total)
        passed += weight
        given[name] = round(passed * count / total) - before
    return given


def _of_package(
    mutants: list[Drawn], seed: int, count: int, sources: Mapping[str, str]
) -> list[Drawn]:
    kinds = Counter(one.operator for one in mutants)
    ranked = sorted(mutants, key=lambda one: _rank(one, seed, kinds[one.operator]))
    taken: set[tuple[str, str, str]] = set()
    chosen: list[Drawn] = []
    for one in ranked:
        place = (one.path, one.function, one.old)
        if len(chosen) < count and place not in taken and _compiles(one, sources):
            taken.add(place)
            chosen.append(one)
    return chosen


def _rank(one: Drawn, seed: int, of_its_kind: int) -> float:
    """Return a draw from an exponential race: rare kinds run faster."""
    digest = hashlib.blake2b(f"{seed} {one.id}".encode(), digest_size=8).digest()
    random_source = (int.from_bytes(digest) + 1) / (1 << 64)
    return -math.log(random_source) * math.sqrt(of_its_kind)


def _named(path: str, source: Source, found: list[Place]) -> list[Drawn]:
    seen: Counter[tuple[str, str, str]] = Counter()
    named = []
    text = source.text
    for place in found:
        edit = place.edit
        start = text.rfind("\n", 0, edit.start) + 1
        end = text.find("\n", max(edit.end, edit.start))
        end = len(text) if end < 0 else end
        old = text[start:end].strip()
        new = (text[start : edit.start] + edit.new + text[edit.end : end]).strip()
        nth = seen[place.function, old, new]
        seen[place.function, old, new] += 1
        line = source.line_of(edit.start)
        named.append(Drawn(path, place.function, edit.operator, line, old, new, nth, edit))
    return named


def _compiles(one: Drawn, sources: Mapping[str, str]) -> bool:
    try:
        compile(one.applied(sources[one.path]), one.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def equivalents(path: Path = EQUIVALENT) -> dict[tuple[str, str, str, str, int], str]:
    """Return the changes that nothing can tell from the code, with the reason."""
    if not path.exists():
        return {}
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    return {
        (one["path"], one.get("function", ""), one["old"], one["new"], one.get("nth", 0)): one[
            "reason"
        ]
        for one in rows
    }
