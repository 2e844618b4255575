"""`python -m mutants.alive ID COMMAND …`: run a command of ours on code in which a mutant lives.

To see a deliberate bug at work, under a story or a seed that shows it. COMMAND is `kraft-wire …` or
`python …`; its output and exit code are the command's own. 2 where there is no such mutant or
command. What proves that a mutant is killed is `python -m mutants`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from mutants.catalogue import StaleMutant, load_all, mutated
from mutants.overlay import CHECKOUT, Overlay

__all__ = ["main"]

_COMMANDS = {
    "kraft-wire": [sys.executable, "-m", "kraft_wire.cli.main"],
    "python": [sys.executable],
}


def main(arguments: Sequence[str]) -> int:
    """Run one command beside the checkout."""
    found = [one for one in load_all() if arguments and one.id.upper() == arguments[0].upper()]
    if not found or len(arguments) < 2 or arguments[1] not in _COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    (mutant,) = found
    try:
        sources = mutated(mutant, CHECKOUT)
    except StaleMutant as error:
        print(error, file=sys.stderr)
        return 2
    overlay = Overlay()
    try:
        with overlay.changed(sources):
            # Python puts the working directory first for `-m`; the mutant's code goes before it.
            environment = {**os.environ, "PYTHONPATH": str(overlay.root), "PYTHONSAFEPATH": "1"}
            command = [*_COMMANDS[arguments[1]], *arguments[2:]]
            return subprocess.run(command, env=environment).returncode
    finally:
        overlay.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
