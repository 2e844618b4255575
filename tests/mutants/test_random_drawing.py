"""What is drawn depends on the seed and the tree alone, and on little of the tree."""

import pytest

from mutants.random.candidates import source_of
from mutants.random.coverage_map import product_files
from mutants.random.drawing import Drawn, all_mutants, draw, equivalents, is_within, shares

TREE = {
    "kraft_wire/raft/one.py": "def f(a, b):\n    if a < b:\n        a += 1\n    return a\n",
    "kraft_wire/raft/two.py": "def g(a):\n    return not a\n\n\ndef h(a):\n    return [a, 1]\n",
    "kraft_wire/wire/three.py": "LIMIT = 10\n\n\ndef f(a):\n    return a + LIMIT - 1 - 1\n",
}


def places(drawn: list[Drawn]) -> list[tuple[str, str, str, str, int]]:
    return [one.key for one in drawn]


def test_equal_seeds_draw_the_same_and_others_do_not() -> None:
    assert places(draw(TREE, 1, 4)) == places(draw(dict(reversed(TREE.items())), 1, 4))
    assert len({tuple(places(draw(TREE, seed, 4))) for seed in range(8)}) > 1


def test_a_line_is_drawn_once_and_packages_have_their_shares() -> None:
    drawn = draw(TREE, 1, 6)
    assert len({(one.path, one.old) for one in drawn}) == len(drawn)
    assert {one.package for one in drawn} == {"raft", "wire"}
    assert {one.package for one in draw(TREE, 1, 6, ["wire"])} == {"wire"}


def test_packages_may_be_named_to_the_module() -> None:
    paths = ["broker/transactions/log.py", "broker/producing.py", "broker/produce.py", "cli/a.py"]
    chosen = ["broker/transactions", "broker/producing", "cli"]
    found = [one for one in paths if is_within(f"kraft_wire/{one}", chosen)]
    assert found == [paths[0], paths[1], paths[3]]
    assert is_within("kraft_wire/broker/produce.py", [])


def test_lines_that_move_change_nothing() -> None:
    moved = {path: f"# one\n# two\n{text}" for path, text in TREE.items()}
    before, after = draw(TREE, 1, 4), draw(moved, 1, 4)
    assert [one.id for one in before] == [one.id for one in after]
    assert [one.line + 2 for one in before] == [one.line for one in after]


def test_equal_changes_of_a_line_have_names_of_their_own() -> None:
    every = all_mutants(TREE)
    assert len({one.id for one in every}) == len(every)
    signs = [one for one in every if one.operator == "sign" and "LIMIT" in one.old]
    assert len({one.applied(TREE[one.path]) for one in signs}) == len(signs) == 3


def test_change_is_made_where_it_says() -> None:
    for one in all_mutants(TREE):
        text = one.applied(TREE[one.path])
        assert one.old in TREE[one.path]
        assert one.new in text
        assert text != TREE[one.path]


@pytest.mark.parametrize("count", [0, 1, 7, 400])
def test_shares_follow_the_square_root_and_are_exact(count: int) -> None:
    given = shares({"a": 100, "b": 10_000, "c": 400}, count)
    assert sum(given.values()) == count
    assert count < 400 or given == {"a": 31, "b": 307, "c": 62}


def test_every_equivalent_mutant_is_one_that_can_be_drawn() -> None:
    listed = equivalents()
    paths = {path for path, *_ in listed}
    assert paths <= set(product_files())
    possible = {one.key for one in all_mutants({path: source_of(path) for path in paths})}
    assert [key for key in listed if key not in possible] == []
    assert all(len(reason) > 10 for reason in listed.values())
