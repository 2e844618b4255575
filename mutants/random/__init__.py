"""Mutants drawn at random over the hand-written tree, and the judges that must notice them.

`python -m mutants.random --seed 1 --count 400`. Reading order: `operators`, `places`, `blocks`,
`coverage_map`, `fork_server`, `judges`, `campaign`, `report`.
"""
