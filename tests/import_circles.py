"""Find import circles: groups of modules each of which imports all others, directly or not.

Imports inside functions and those that exist only for type checkers count: a reader follows them
like any other. A package's `__init__` counts as what it imports, but importing a module is not
importing the packages above it.
"""

from collections.abc import Iterable, Mapping

import grimp

__all__ = ["import_circles", "imports_of"]


def imports_of(package: str) -> dict[str, list[str]]:
    """Return module -> modules of the package that it imports, both in order of names."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {
        module: sorted(graph.find_modules_directly_imported_by(module))
        for module in sorted(graph.modules)
    }


def import_circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components of two or more modules, each in order of names.

    Path-based algorithm (Gabow), iterative: the package's import chains are long.
    """
    found: list[list[str]] = []
    index: dict[str, int] = {}
    done: set[str] = set()
    for start in imports:
        if start in index:
            continue
        index[start] = len(index)
        pending, roots = [start], [start]
        walk = [(start, iter(imports[start]))]
        while walk:
            module, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                walk.pop()
                if roots[-1] == module:
                    roots.pop()
                    at = pending.index(module)
                    component, pending = pending[at:], pending[:at]
                    done.update(component)
                    if len(component) > 1:
                        found.append(sorted(component))
            elif following not in index:
                index[following] = len(index)
                pending.append(following)
                roots.append(following)
                walk.append((following, iter(imports[following])))
            elif following not in done:
                while index[roots[-1]] > index[following]:
                    roots.pop()
    return sorted(found)
