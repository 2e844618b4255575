"""`@frozen`: a frozen, slotted class of annotated fields, cheap to define.

It means what `dataclass(frozen=True, slots=True)` means, for fields with or without a default and
nothing else. dataclasses write and compile seven methods for each class, here it is one: a node
starts with some sixty such classes, and starting in milliseconds is a promise.

Not here: default factories, `__post_init__`, ordering, `replace`; a class that needs one of them
is a dataclass.
"""

from collections.abc import Callable
from inspect import get_annotations
from operator import attrgetter
from typing import Final, TypeVar, dataclass_transform

__all__ = ["frozen"]

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, eq_default=True)
def frozen(cls: type[_T]) -> type[_T]:
    """Return the class with `__init__`, `__slots__`, and what compares, hashes and prints fields.

    Values are equal when they are of the same class and their fields are equal.
    """
    names = tuple(get_annotations(cls))
    body = {name: each for name, each in cls.__dict__.items() if name not in names}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = body["__match_args__"] = names
    body["_fields_of"] = _fields_of(names)
    body.update(_SHARED)
    make: Callable[..., type[_T]] = type(cls)
    made = make(cls.__name__, cls.__bases__, body)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    type.__setattr__(made, "__init__", _initializer(made, names, defaults))
    return made


def _fields_of(names: tuple[str, ...]) -> Callable[[object], object]:
    """Return what reads all fields of an object: one alone, or several as a tuple."""
    return attrgetter(*names) if names else staticmethod(lambda _: ())


def _initializer(
    cls: type, names: tuple[str, ...], defaults: dict[str, object]
) -> Callable[..., None]:
    """Write `__init__`: it stores through the slots, because assignment is refused."""
    scope: dict[str, object] = {f"_set_{name}": getattr(cls, name).__set__ for name in names}
    scope.update({f"_default_{name}": default for name, default in defaults.items()})
    parameters = [f"{name}=_default_{name}" if name in defaults else name for name in names]
    stores = [f" _set_{name}(self, {name})" for name in names] or [" pass"]
    source = f"def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(stores)
    exec(source, scope)  # the field names of a class of ours
    made: Callable[..., None] = scope["__init__"]  # type: ignore[assignment]  # just defined
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _refuse(self: object, name: str, _: object = None) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: it is frozen")


def _equal(self: object, other: object) -> object:
    if self.__class__ is not other.__class__:
        return NotImplemented
    fields_of: Callable[[object], object] = self._fields_of  # type: ignore[attr-defined]  # set by frozen
    return fields_of(self) == fields_of(other)


def _hash(self: object) -> int:
    return hash((self.__class__, self._fields_of(self)))  # type: ignore[attr-defined]  # set by frozen


def _print(self: object) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in type(self).__slots__)  # type: ignore[attr-defined]  # set by frozen
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _reduce(self: object) -> tuple[type, tuple[object, ...]]:
    """Let copies and pickles be made by the constructor."""
    return type(self), tuple(getattr(self, name) for name in type(self).__slots__)  # type: ignore[attr-defined]  # set by frozen


_SHARED: Final = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _print,
    "__reduce__": _reduce,
}
