"""Modules of the product do not import each other in a circle."""

from tests.import_circles import import_circles, imports_of


def test_a_circle_is_found_with_its_members_and_nothing_beside_it() -> None:
    imports = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": [], "f": ["g"], "g": ["f"]}
    assert import_circles(imports) == [["a", "b", "c"], ["f", "g"]]


def test_the_package_has_no_import_circles() -> None:
    assert import_circles(imports_of("kraft_wire")) == []
