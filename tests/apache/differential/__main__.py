"""Ask two running brokers: ``python -m tests.apache.differential APACHE OURS [PART OF A NAME]``.

For whoever changes a handler: starting Apache's broker takes longer than all probes of an API.
"""

import secrets
import sys
import traceback

from tests.apache.differential.catalogue import PROBES
from tests.apache.differential.probes import Probe, disagreements
from tests.apache.differential.side import Side


def lines_of(probe: Probe, sides: tuple[Side, Side]) -> list[str]:
    """What a probe found, or how it failed."""
    try:
        return disagreements(probe, *sides)
    except (AssertionError, ValueError, OSError):
        for side in sides:
            side.close()
        return traceback.format_exc().splitlines()[-6:]


def main(apache: str, ours: str, part: str = "") -> int:
    """Print every disagreement with the versions that show it; return how many there are."""
    run = secrets.token_hex(3)
    sides = Side(apache, run), Side(ours, run)
    versions: dict[tuple[str, str, str], list[int]] = {}
    for each in PROBES:
        if part in each.id:
            for line in lines_of(each, sides):
                alike = line.replace(f"-{each.version}", "-V").replace(run, "RUN")
                versions.setdefault((each.api, each.ask.__name__, alike), []).append(each.version)
    for (api, name, line), seen in versions.items():
        print(f"{api} {name} v{','.join(map(str, seen))}: {line}")
    return len(versions)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
