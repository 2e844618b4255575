"""Which states a disk may be in after a crash: the enumeration behind `make crash`.

Before every change that a scenario makes, the unsynced atoms of the simulated disk are listed and
subsets of them are drawn: all 2^k while k is small, beyond that singles, pairs, prefixes, suffixes
and random ones; plus states in which one sector holds garbage. Equal images are checked once
(per ledger; the same atoms on the platter are the same image). Recovery of each image runs on a
recorded disk too, so that crashes during recovery are enumerated the same way (depth 2).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations
from random import Random

from kraft_wire.sim.disk.files import Atom, SimFileSystem

__all__ = ["CrashState", "Enumerator", "Limits", "many_subsets", "plain_subsets"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the enumeration."""

    exhaustive_atoms: int = 14  # 2^k subsets up to that many atoms
    random_subsets: int = 4096
    recovery_exhaustive_atoms: int = 4
    recovery_random_subsets: int = 8
    states_max: int = 20_000  # per scenario
    recovery_every: int = 1
    """The recovery from one state in that many is crashed in its turn."""


@dataclass(frozen=True, slots=True)
class CrashState:
    """One disk image after a crash, with what had been promised before it."""

    image: dict[str, bytes | None]
    ledger: object
    is_ordered: bool  # the writes up to some moment, all of them: nothing is out of order
    depth: int


_Subset = tuple[frozenset[int], frozenset[int], bool]
"""Survivors, those of them that hold garbage, and whether the survivors are in order."""


def plain_subsets(atoms: list[Atom]) -> Iterator[_Subset]:
    """Yield the basic states: prefixes, one sector of garbage, all but one, only one."""
    numbers = [atom.number for atom in atoms]
    everything = frozenset(numbers)
    last = len(numbers) - 1
    for length in range(len(numbers) + 1):
        yield frozenset(numbers[:length]), frozenset(), True
    for index, atom in enumerate(atoms):
        spoilt = frozenset([atom.number])
        if atom.is_data:
            yield frozenset(numbers[: index + 1]), spoilt, True
            yield everything, spoilt, index == last
        yield everything - spoilt, frozenset(), index == last
        yield spoilt, frozenset(), index == 0


def many_subsets(
    atoms: list[Atom], exhaustive: int, random_count: int, random_source: Random
) -> Iterator[_Subset]:
    """Yield all subsets of few atoms; of many: pairs, suffixes and random ones."""
    numbers = [atom.number for atom in atoms]
    count = len(numbers)
    everything = frozenset(numbers)
    if count <= exhaustive:
        for bits in range(1 << count):
            yield _chosen(numbers, bits), frozenset(), False
        return
    for pair in combinations(numbers, 2):
        yield frozenset(pair), frozenset(), False
        yield everything - frozenset(pair), frozenset(), False
    for start in range(count):
        yield frozenset(numbers[start:]), frozenset(), False
    for _ in range(random_count):
        yield _chosen(numbers, random_source.getrandbits(count)), frozenset(), False


def _chosen(numbers: list[int], bits: int) -> frozenset[int]:
    return frozenset(number for at, number in enumerate(numbers) if bits >> at & 1)


@dataclass(slots=True)
class Enumerator:
    """Collects the distinct crash states of one run on one disk."""

    limits: Limits
    random_source: Random
    check: Callable[[CrashState], None]
    seen: dict[int, bool] = field(default_factory=dict)
    """States, and whether each was checked as one with nothing out of order."""
    images: set[int] = field(default_factory=set)
    """Their contents of the disk, without the promises."""
    ledgers: list[object] = field(default_factory=list)  # kept, so that ids stay unique
    operations: int = 0
    watched: "_Watched | None" = None

    @property
    def is_exhausted(self) -> bool:
        """Whether the scenario has had its share of states."""
        return len(self.images) >= self.limits.states_max

    def watch(
        self,
        fs: SimFileSystem,
        ledger: Callable[[], object],
        depth: int,
        *,
        is_ordered: bool = True,
    ) -> None:
        """Enumerate at every change of `fs` from now on; `is_ordered` is about its start."""
        watched = _Watched(fs, depth, is_ordered)
        fs.before_change = lambda: self.crash_here(watched, ledger())
        self.watched = watched if depth == 1 else self.watched

    def crash_here(self, watched: "_Watched", ledger: object) -> None:
        """Check every new state that a crash at this moment could leave."""
        depth = watched.depth
        self.operations += depth == 1
        atoms = watched.fs.pending_atoms()
        if (self.is_exhausted and depth > 1) or not watched.has_news(atoms, ledger):
            return
        limits = self.limits
        exhaustive, random_count = (
            (limits.exhaustive_atoms, limits.random_subsets)
            if depth == 1
            else (limits.recovery_exhaustive_atoms, limits.recovery_random_subsets)
        )
        pinned = (1 << watched.fs.next_atom) - 1 ^ _mask(atom.number for atom in atoms)
        plain = plain_subsets(atoms)
        many = many_subsets(atoms, exhaustive, random_count, self.random_source)
        for survivors, garbage, is_prefix in plain if self.is_exhausted else chain(plain, many):
            is_ordered = is_prefix and watched.is_ordered
            reached = (pinned | _mask(survivors), _mask(garbage), self._owed(ledger))
            if watched.reached.get(reached, False) < is_ordered or reached not in watched.reached:
                watched.reached[reached] = is_ordered
                self._consider(watched, ledger, (survivors, garbage, is_ordered))

    def _owed(self, ledger: object) -> int:
        """Return the identity of a ledger: its value, or its object."""
        try:
            return hash(ledger)
        except TypeError:
            if not self.ledgers or self.ledgers[-1] is not ledger:
                self.ledgers.append(ledger)
            return id(ledger)

    def _consider(self, watched: "_Watched", ledger: object, subset: _Subset) -> None:
        """Check one state unless an equal image was checked under this ledger."""
        survivors, garbage, is_ordered = subset
        image = watched.fs.image(survivors, garbage)
        fingerprint = hash(frozenset(image.items()))
        key = hash((fingerprint, self._owed(ledger)))
        if self.seen.get(key, False) >= is_ordered and key in self.seen:
            return
        self.seen[key] = is_ordered
        self.images.add(fingerprint)
        self.check(CrashState(image, ledger, is_ordered, watched.depth))


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


@dataclass(slots=True)
class _Watched:
    """A recorded disk, and its states that were already checked."""

    fs: SimFileSystem
    depth: int
    is_ordered: bool
    reached: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    """Which atoms reached the platter, which of them as garbage, and what was owed then: together
    they say what the image is. Whether it was looked at as one with nothing out of order."""
    _numbers: frozenset[int] = frozenset()
    _syncs_count: int = -1
    _ledger: object = None

    def has_news(self, atoms: list[Atom], ledger: object) -> bool:
        """Take note of the moment; False when nothing changed since the last one."""
        numbers = frozenset(atom.number for atom in atoms)
        is_same = self._syncs_count == self.fs.syncs_count and self._ledger is ledger
        has_news = not is_same or numbers != self._numbers
        self._numbers, self._syncs_count, self._ledger = numbers, self.fs.syncs_count, ledger
        return has_news
