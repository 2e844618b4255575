"""Settings of a topic, a broker or a group, as a table or as JSON."""

from collections.abc import Iterable
from dataclasses import asdict

from kraft_wire.cli.output import new_table, print_json, print_table
from kraft_wire.cli.topics.admin import ConfigFacts

__all__ = ["print_settings"]


def print_settings(settings: Iterable[ConfigFacts], *, show_all: bool, as_json: bool) -> None:
    """Print the settings that are not the default, or all of them with their documentation."""
    shown = [each for each in settings if show_all or each.source != "default"]
    if as_json:
        print_json([asdict(each) for each in shown])
        return
    table = new_table("key", "value", "from", *(["meaning"] if show_all else []))
    for each in shown:
        row = [each.name, "-" if each.value is None else each.value, each.source]
        table.add_row(*row, *([each.documentation or ""] if show_all else []))
    print_table(table)
