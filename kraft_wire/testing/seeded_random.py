"""Random numbers of a seed: ids and back-offs of a cluster for tests are the same in each run."""

import random

__all__ = ["SeededRandom"]


class SeededRandom:
    """`model.RandomSource` for tests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return self._random.randrange(bound)
