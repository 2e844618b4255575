"""`python -m tests.fuzz.one TARGET CORPUS [options of libFuzzer]`: fuzzes one target."""

import sys

import atheris

with atheris.instrument_imports(include=["kraft_wire"]):
    # What is imported when first used would come too late to be instrumented.
    from kraft_wire.wire.compression import (  # noqa: F401  # as said above
        gzip_members,
        lz4_frame,
        snappy_framing,
        zstd_frames,
    )
    from kraft_wire.wire.generated import registry
    from tests.fuzz.targets import TARGETS

    _LOADED = {
        "request": lambda: [registry.request_class(key) for key in registry.REQUESTS],
        "response": lambda: [registry.response_class(key) for key in registry.RESPONSES],
        "metadata_record": lambda: [
            registry.metadata_record_class(kind) for kind in registry.METADATA_RECORDS
        ],
    }
    if sys.argv[1] in _LOADED:
        _LOADED[sys.argv[1]]()


def main() -> None:
    """Hand the rest of the command line to libFuzzer; does not return."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
