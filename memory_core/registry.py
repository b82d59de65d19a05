"""Named sets of plugins, and how a plugin package is loaded."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Generic, TypeVar

from memory_core.errors import NotFound

T = TypeVar("T")


class Registry(Generic[T]):
    """A named set of plugins; each plugin file adds itself when it is imported."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._items: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator: register under `name`; a second use of a name raises `ValueError`."""

        def register(item: T) -> T:
            if name in self._items:
                raise ValueError(f"two {self._what}s are named {name!r}")
            self._items[name] = item
            return item

        return register

    def get(self, name: str) -> T:
        """The plugin of that name, or `NotFound` naming those there are."""
        try:
            return self._items[name]
        except KeyError:
            known = ", ".join(self.names())
            raise NotFound(f"no {self._what} named {name!r}; there are: {known}") from None

    def names(self) -> list[str]:
        return sorted(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(sorted(self._items.items()))


def discover(package: ModuleType) -> None:
    """Import every module of a plugin package, so that each registers itself."""
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
