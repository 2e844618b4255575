"""`python -m tests.cli.record_formatted`: have Apache's tool format what test_format.py names."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.test_format import FORMATTED, RECORDED, formatted_by_apache


def main() -> None:
    """Write the recording anew."""
    with TemporaryDirectory() as scratch:
        found = {
            case: formatted_by_apache(Path(scratch, str(number)), case)
            for number, case in enumerate(FORMATTED)
        }
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
