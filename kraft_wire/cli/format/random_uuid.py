"""`kraft-wire random-uuid`: draw an id for a cluster or a directory, as `kafka-storage` does."""

import sys

import typer

from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.model import random_uuid, uuid_to_text

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def random_uuid_command() -> None:
    """Print a random 22-character id."""
    sys.stdout.write(f"{uuid_to_text(random_uuid(SystemRandomSource()))}\n")
