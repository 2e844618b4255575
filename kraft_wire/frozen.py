"""`@frozen` and `@slotted`: slotted classes of annotated fields, cheap to define.

`@frozen` means what `dataclass(frozen=True, slots=True)` means, `@slotted` what
`dataclass(slots=True)` means. dataclasses write and compile up to seven methods for each class,
here it is one: a node starts with a hundred such classes, and starting quickly is a promise.
`dataclasses.field`, `fields`, `replace` and `asdict` work with both.

Not here: `__post_init__`, `init=False`, fields of a base class; a class that needs one of
them is a dataclass.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, make_dataclass
from inspect import get_annotations
from operator import attrgetter, eq, ge, gt, le, lt
from typing import Any, Final, ParamSpec, TypeVar, dataclass_transform, overload

__all__ = ["frozen", "maker", "slotted"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_DESCRIPTION: Final = ("__dataclass_fields__", "__dataclass_params__")


@overload
@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(field,))
def frozen(cls: type[_T], /) -> type[_T]: ...
@overload
def frozen(*, kw_only: bool = False, order: bool = False) -> Callable[[type[_T]], type[_T]]: ...
def frozen(cls: type[_T] | None = None, /, *, kw_only: bool = False, order: bool = False) -> object:
    """Return the class with `__init__`, `__slots__`, comparison, hash and `repr` of fields.

    Values are equal when they are of the same class and their fields are equal; with `order` they
    are ordered as tuples of their fields are.
    """
    shared = _ORDERED if order else _FROZEN
    if cls is None:
        return lambda cls: _made(cls, shared, kw_only)
    return _made(cls, shared, kw_only)


@overload
@dataclass_transform(eq_default=True, field_specifiers=(field,))
def slotted(cls: type[_T], /) -> type[_T]: ...
@overload
def slotted(*, eq: bool = True) -> Callable[[type[_T]], type[_T]]: ...
def slotted(cls: type[_T] | None = None, /, *, eq: bool = True) -> object:
    """Return the class with `__init__`, `__slots__`, comparison and `repr` of fields.

    It has no hash, because its fields may change; with `eq=False` a value equals itself alone, and
    has a hash.
    """
    shared = _SLOTTED if eq else _UNEQUAL
    if cls is None:
        return lambda cls: _made(cls, shared, False)
    return _made(cls, shared, False)


def maker(cls: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a function that makes objects of a `@slotted` class in two thirds of the time.

    CPython 3.11 calls `__init__` from C, but a function without leaving the interpreter's loop.
    """
    initialize: Callable[..., None] = cls.__init__
    names: tuple[str, ...] = cls.__slots__  # type: ignore[attr-defined]  # set by _made
    assert len(names) == initialize.__code__.co_argcount - 1, f"{cls} takes keywords alone"
    stores = "".join(f" self.{name} = {name}\n" for name in names)
    scope: dict[str, Any] = {"cls": cls, "new": object.__new__}
    exec(f"def make({', '.join(names)}):\n self = new(cls)\n{stores} return self", scope)
    scope["make"].__defaults__ = initialize.__defaults__
    make: Callable[_P, _T] = scope["make"]
    return make


def _made(cls: type[_T], shared: Mapping[str, object], kw_only: bool) -> type[_T]:
    types = get_annotations(cls)
    defaults = {name: cls.__dict__[name] for name in types if name in cls.__dict__}
    marked = {name: each for name, each in defaults.items() if isinstance(each, Field)}
    assert all(each.init for each in marked.values()), f"{cls.__name__} must be a dataclass"
    assert not hasattr(cls, "__post_init__"), f"{cls.__name__} must be a dataclass"
    names = tuple(types)
    body = {name: each for name, each in cls.__dict__.items() if name not in types}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = names
    body["__match_args__"] = () if kw_only else names
    body["_fields_of"] = _fields_of(
        tuple(name for name in names if name not in marked or marked[name].compare)
    )
    body["_printed"] = tuple(name for name in names if name not in marked or marked[name].repr)
    body.update(shared)
    for name in _DESCRIPTION:
        body[name] = _AsDataclass(name, types, defaults, kw_only)
    make: Callable[..., type[_T]] = type(cls)
    made = make(cls.__name__, cls.__bases__, body)
    type.__setattr__(made, "__init__", _initializer(made, names, defaults, kw_only))
    return made


def _fields_of(names: tuple[str, ...]) -> Callable[[object], object]:
    """Return a function that reads these fields of an object: one alone, or several as a tuple."""
    return attrgetter(*names) if names else staticmethod(lambda _: ())


def _initializer(
    cls: type, names: tuple[str, ...], defaults: dict[str, object], kw_only: bool
) -> Callable[..., None]:
    """Write `__init__`; of a frozen class it stores through the slots: assignment is refused."""
    is_frozen = cls.__setattr__ is _refuse
    scope: dict[str, object] = {"_missing": MISSING}
    parameters, stores = ["self"] + ["*"] * (kw_only and bool(names)), [" pass"]
    for name in names:
        value, default = name, defaults.get(name, MISSING)
        if isinstance(default, Field):
            if default.default_factory is not MISSING:
                scope[f"_make_{name}"] = default.default_factory
                value = f"_make_{name}() if {name} is _missing else {name}"
            default = default.default
        scope[f"_default_{name}"] = default
        has_default = default is not MISSING or value is not name
        parameters.append(f"{name}=_default_{name}" if has_default else name)
        if is_frozen:
            scope[f"_set_{name}"] = getattr(cls, name).__set__
        stores.append(f" _set_{name}(self, {value})" if is_frozen else f" self.{name} = {value}")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(stores)
    exec(source, scope)  # the field names of a class of ours
    made: Callable[..., None] = scope["__init__"]  # type: ignore[assignment]  # just defined
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class _AsDataclass:
    """The attribute that the functions of dataclasses need, created on first use."""

    def __init__(
        self, name: str, types: dict[str, Any], defaults: dict[str, Any], kw_only: bool
    ) -> None:
        self._name, self._types, self._defaults = name, types, defaults
        self._kw_only = kw_only

    def __get__(self, _: object, cls: type) -> object:
        # Nothing is compiled for the twin: its description is all that we take.
        twin = make_dataclass(
            cls.__name__,
            [(name, kind, self._field(name)) for name, kind in self._types.items()],
            namespace={"__doc__": cls.__name__},
            init=False,
            repr=False,
            eq=False,
            match_args=False,
            kw_only=self._kw_only,
        )
        for name in _DESCRIPTION:
            type.__setattr__(cls, name, getattr(twin, name))
        return getattr(twin, self._name)

    def _field(self, name: str) -> Any:
        default = self._defaults.get(name, MISSING)
        return default if isinstance(default, Field) else field(default=default)


def _refuse(self: object, name: str, _: object = None) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: it is frozen")


def _comparing(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], object]:
    def compared(self: object, other: object) -> object:
        if self.__class__ is not other.__class__:
            return NotImplemented
        fields_of: Callable[[object], object] = self._fields_of  # type: ignore[attr-defined]  # set by _made
        return compare(fields_of(self), fields_of(other))

    return compared


def _hash(self: object) -> int:
    return hash((self.__class__, self._fields_of(self)))  # type: ignore[attr-defined]  # set by _made


def _print(self: object) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in self._printed)  # type: ignore[attr-defined]  # set by _made
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _reduce(self: object) -> tuple[object, ...]:
    """Let copies and pickles be made by the constructor."""
    names: tuple[str, ...] = type(self).__slots__  # type: ignore[attr-defined]  # set by _made
    return _again, (type(self), {name: getattr(self, name) for name in names})


def _again(cls: type[_T], fields: dict[str, object]) -> _T:
    return cls(**fields)


_FROZEN: Final[dict[str, object]] = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__eq__": _comparing(eq),
    "__hash__": _hash,
    "__repr__": _print,
    "__reduce__": _reduce,
}
_ORDERED: Final[Mapping[str, object]] = _FROZEN | {
    "__lt__": _comparing(lt),
    "__le__": _comparing(le),
    "__gt__": _comparing(gt),
    "__ge__": _comparing(ge),
}
_SLOTTED: Final[Mapping[str, object]] = {
    "__eq__": _comparing(eq),
    "__hash__": None,
    "__repr__": _print,
}
_UNEQUAL: Final[Mapping[str, object]] = {"__repr__": _print}
