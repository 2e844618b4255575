"""`python -m tests.walkthroughs [--write]`: run what docs/walkthroughs/*.md shows.

A page has blocks ```sh, each followed by a block ```text with what it printed; without one it must
print nothing. They run in order, in a scratch directory that looks like the checkout. A comment

    <!-- picture: FILE.html#FROM-UNTIL,NAME WIDTHxHEIGHT -->

says from which page that a block wrote, and at which time of the run, the picture in the next line
was taken. What a page's blocks started and left running is ended with the page. --write records
output and pictures anew; read what changed as a diff; --only NAME takes one page. Without --write,
exit code 1 where the output is another one. Pictures need chromium, and are not compared.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.cli.cluster.options import HERE
from tests.tidiness import CHECKOUT

__all__ = ["PAGES", "PICTURE", "played"]

PAGES = sorted((CHECKOUT / "docs" / "walkthroughs").glob("*.md"))
BLOCK = re.compile(r"^```sh\n(?P<script>.*?)^```\n(?:\n```text\n.*?^```\n)?", re.M | re.S)
PICTURE = re.compile(
    r"^<!-- picture: (?P<page>\S+?\.html)#(?P<place>\S+) (?P<width>\d+)x(?P<height>\d+) -->\n"
    r"!\[[^\]]+\]\((?P<file>[\w-]+\.png)\)$",
    re.M,
)
_TIMEOUT_S = 240


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory in which everything of the checkout can be named as there."""
    with TemporaryDirectory(prefix="kraft-wire-walkthrough-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        for entry in CHECKOUT.iterdir():
            if entry.name not in (".git", HERE.name):  # a page's cluster is its own
                (place / entry.name).symlink_to(entry)
        try:
            yield place
        finally:
            kill_whoever_works_in(place)


def kill_whoever_works_in(place: Path) -> None:
    """Kill the processes of a page that did not get to its end; a page ends its own."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if (process / "cwd").readlink().is_relative_to(place):
                os.kill(int(process.name), signal.SIGKILL)


def played(text: str, place: Path) -> str:
    """The page with what its blocks print now."""

    def anew(block: re.Match[str]) -> str:
        printed = _printed(block["script"], place)
        shown = f"\n```text\n{printed}```\n" if printed else ""
        return f"```sh\n{block['script']}```\n{shown}"

    return BLOCK.sub(anew, text)


def _printed(script: str, place: Path) -> str:
    commands = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-uc", script],
        cwd=place,
        env={**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def take_pictures(text: str, place: Path, folder: Path) -> None:
    """Take the pictures of a page from what its blocks wrote."""
    for found in PICTURE.finditer(text):
        arguments = [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--window-size={found['width']},{found['height']}",
            *("--virtual-time-budget=6000", f"--user-data-dir={place / 'profile'}"),
            f"--screenshot={folder / found['file']}",
            f"{(place / found['page']).as_uri()}#{found['place']}",
        ]
        subprocess.run(arguments, capture_output=True, timeout=_TIMEOUT_S, check=True)


def main(arguments: list[str]) -> int:
    """Run pages; with --write record them, else tell which ones differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.walkthroughs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=[path.stem for path in PAGES])
    options = parser.parse_args(arguments)
    pages = [path for path in PAGES if options.only in (None, path.stem)]
    different = []
    for path in pages:
        recorded = path.read_text(encoding="utf-8")
        with scratch() as place:
            now = played(recorded, place)
            if now != recorded:
                different.append(path.stem)
            if options.write:
                path.write_text(now, encoding="utf-8")
                take_pictures(now, place, path.parent)
    print(f"{len(pages)} walkthroughs, {len(different)} different: {', '.join(different) or '-'}")
    return int(bool(different) and not options.write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
