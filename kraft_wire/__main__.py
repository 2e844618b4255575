"""`python -m kraft_wire` is the `kraft-wire` command."""

from kraft_wire.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
