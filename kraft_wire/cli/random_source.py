"""The operating system's randomness as a port: the one place of the program that asks for it."""

import os

__all__ = ["SystemRandomSource"]


class SystemRandomSource:
    """`model.RandomSource` for everything that runs in production."""

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:  # half of all draws fit, at the least
            drawn = int.from_bytes(os.urandom(size), "big") >> (8 * size - bits)  # noqa: TID251  # the port itself
            if drawn < bound:
                return drawn
