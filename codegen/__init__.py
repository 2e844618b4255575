"""Turn Kafka's message schemas into the modules of `kraft_wire/wire/generated`.

Read in this order: versions (ranges), spec (the strict reader), names (Python's spelling of
Kafka's names), plan (every decision about bytes), emit (decisions to lines of Python), write
(files on disk). `schema_import` and `diff` stand beside that pipeline.
"""
