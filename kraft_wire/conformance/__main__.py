"""`python -m kraft_wire.conformance`: the same as `kraft-wire conform`."""

from kraft_wire.conformance.command import app

if __name__ == "__main__":
    app(prog_name="kraft-wire conform")
