"""Orders of `java.util.HashMap`, as printed by Java 17."""

from kraft_wire.controller.java_map import java_map_order


def test_a_map_of_few_texts() -> None:
    names = ["transaction.version", "share.version", "kraft.version"]
    ordered = ["kraft.version", "share.version", "transaction.version"]
    assert java_map_order(names) == java_map_order(names[::-1]) == ordered


def test_a_map_that_has_grown() -> None:
    """14 texts, some of them with a letter beyond ASCII."""
    names = [f"key.{number}" + ("\u00e9" if number % 3 == 0 else "") for number in range(14)]
    ordered = [9, 12, 13, 2, 1, 11, 10, 0, 5, 4, 3, 8, 7, 6]
    assert java_map_order(names) == [names[number] for number in ordered]
