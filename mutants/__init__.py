"""Deliberate bugs in kraft_wire, one file each, and the runner that must kill every one.

`python -m mutants`. Reading order: `catalogue`, `overlay`, `probe`,
`campaign`. Nothing here is imported by kraft_wire.
"""
