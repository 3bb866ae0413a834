"""Find the types that the modules of a group define: a type is known everywhere once its file exists.

A group is a package, such as `ldpopt.design.constraints`, or the modules with matching names in the folders of all
classes of problems. `CERTIFICATE_MODULES` are those named `proof*` and those of the kernel, `METHOD_MODULES` those
named `method*`.

A registered type is a utility, a constraint, a certificate, a method, or a class that a utility takes, such as a
criterion. The codec of design files, the lists of `ldpopt.design` and `ldpopt`, and the tables of the documentation are
built from these.

The types also declare the parameters that commands and web pages request, in `Kind.asks`: `offered_types(package)`
lists the types with such parameters, in the order of their display. `command_options(package)` lists the options of
commands. `types_with_parameters(package, names)` lists the types that the names select, and `from_values(values)`
builds one. `parameter_values(constraint)` maps an object back to the values.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import Checked, Reader

_PACKAGE = __name__.rpartition(".")[0]
_KINDS: dict[str, type[Kind]] = {}
_CLASS = re.compile(r"^class (\w+)(?:\((.*?)\))?:$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a type, as commands and web pages request it.

    - `name` : the name in a command or on a page. Types may share one, as ``epsilon`` is shared.
    - `help` : a sentence.
    - `unit` : the placeholder of the value in the help of a command.
    - `field` : the name of the field of the type, if it differs.
    - `type` : float, int, list (a distribution) or str (a divergence as `divergences.parse_divergence` reads it).
    """

    name: str
    help: str
    unit: str
    field: str = ""
    type: type = float


class Kind(Checked):
    """A class that registers itself under its name if it is part of this package; a user-defined class does not."""

    takes: ClassVar[tuple[type, ...]] = ()
    """Classes of other groups that a field of the type `Any` may hold in a design file."""
    asks: ClassVar[tuple[Parameter, ...]] = ()
    """The parameters that commands and web pages request; empty for a type that they do not offer.

    A command may join several numbers of one type alone by colons, under the last name: ``--renyi ORDER:NATS``.
    """
    preference: ClassVar[int] = 1000
    """The position in lists and trials of similar types, in ascending order."""

    def __init_subclass__(cls, **readers: Reader) -> None:
        super().__init_subclass__(**readers)
        if cls.__module__.startswith(f"{_PACKAGE}.") and not cls.__name__.startswith("_"):
            registered_type = _KINDS.setdefault(cls.__name__, cls)
            if (registered_type.__module__, registered_type.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"{cls.__name__}: expected a name of its own, got that of {registered_type.__module__}")
            _KINDS[cls.__name__] = cls

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Build an instance from the values of `asks` by name; raises `InvalidInput` for a wrong value."""
        return cls(**{parameter.field or parameter.name: values[parameter.name] for parameter in cls.asks})


@dataclass(frozen=True)
class ModuleGroup:
    """The modules in folders of `ldpopt.design` whose names, ``folder.module``, match one of several patterns."""

    patterns: tuple[str, ...]


CERTIFICATE_MODULES = ModuleGroup(("kernel.*", "*.proof*"))
METHOD_MODULES = ModuleGroup(("*.method*",))


def modules_of(group: ModuleType | ModuleGroup) -> tuple[str, ...]:
    """List the names of the modules of a group without importing them."""
    return tuple(_specs(group))


@cache
def _specs(group: ModuleType | ModuleGroup) -> dict[str, Any]:
    """Return the import specifications of the modules of a group by name."""
    if not isinstance(group, ModuleGroup):
        return _specs_in(group.__path__, f"{group.__name__}.")
    specs: dict[str, Any] = {}
    for path in importlib.import_module(_PACKAGE).__path__:
        for folder in (module.name for module in pkgutil.iter_modules([path]) if module.ispkg):
            specs |= _specs_in([f"{path}/{folder}"], f"{_PACKAGE}.{folder}.")
    prefix_length = len(_PACKAGE) + 1
    return {
        name: spec for name, spec in specs.items() if any(fnmatchcase(name[prefix_length:], p) for p in group.patterns)
    }


def _specs_in(path: Iterable[str], prefix: str) -> dict[str, Any]:
    modules: Iterable[Any] = pkgutil.iter_modules(path, prefix)
    return {module.name: module.module_finder.find_spec(module.name, None) for module in modules}


def registered_types(*groups: ModuleType | ModuleGroup) -> dict[str, type[Kind]]:
    """List the non-abstract types by name that the modules of some groups define; imports all modules."""
    modules = {name for group in groups for name in modules_of(group)}
    for module in sorted(modules):
        importlib.import_module(module)
    concrete = (kind for kind in _KINDS.values() if kind.__module__ in modules and not inspect.isabstract(kind))
    return {kind.__name__: kind for kind in sorted(concrete, key=lambda kind: kind.__name__)}


def import_defining_module(name: str, *groups: ModuleType | ModuleGroup) -> ModuleType | None:
    """Import the module of some groups that defines a class; the sources are searched, no other module is imported."""
    headers = (classes[name] for group in groups if name in (classes := class_headers(group)))
    return next((importlib.import_module(header.module) for header in headers), None)


class ClassHeader(NamedTuple):
    """The module that defines a class, and the source text in its parentheses; None without a source."""

    module: str
    arguments: str | None


@cache
def class_headers(group: ModuleType | ModuleGroup) -> dict[str, ClassHeader]:
    """Read the headers of all classes of a group by name from the sources, without importing a module."""
    headers: dict[str, ClassHeader] = {}
    for module, spec in _specs(group).items():
        source = spec.loader.get_source(module)
        classes = _classes_without_source(module) if source is None else _CLASS.findall(source)
        headers |= {name: ClassHeader(module, arguments) for name, arguments in classes}
    return headers


def _classes_without_source(module: str) -> list[tuple[str, None]]:
    """List the classes that a module without a source defines."""
    values = vars(importlib.import_module(module)).items()
    return [(name, None) for name, value in values if isinstance(value, type) and value.__module__ == module]


def inherits(value: Any, name: str) -> bool:
    """Return True if `value` is of the type of this name, or of a derived type; its module is not imported."""
    return any(kind.__name__ == name and kind.__module__.startswith(f"{_PACKAGE}.") for kind in type(value).__mro__)


def registered_type(name: str, *groups: ModuleType | ModuleGroup) -> type[Kind] | None:
    """Return the type of a name that some groups define, or None; only its module is imported."""
    candidate = None if import_defining_module(name, *groups) is None else _KINDS.get(name)
    return None if candidate is None or inspect.isabstract(candidate) else candidate


def offered_types(package: ModuleType) -> tuple[type[Kind], ...]:
    """List the types that commands and web pages offer, in the order of their display.

    Parameters
    ----------
    package : `ldpopt.design.constraints`, or another package of types.

    Returns
    -------
    tuple[type, ...]
        The types.

    Examples
    --------
    >>> from ldpopt.design import constraints
    >>> offered_types(constraints)[0].__name__
    'LocalDP'
    """
    return tuple(
        sorted((kind for kind in registered_types(package).values() if kind.asks), key=lambda kind: kind.preference)
    )


def types_with_parameters(package: ModuleType, names: Collection[str]) -> tuple[type[Kind], ...]:
    """List the types that the names of parameters select, in order.

    If the parameters of one type include those of another, the type with more parameters is selected.

    Parameters
    ----------
    package : As for `offered_types`.
    names : The names of parameters, such as epsilon and delta.

    Returns
    -------
    tuple[type, ...]
        The selected types.

    Raises
    ------
    InvalidInput
        If a name comes without the others that its type requires.

    Examples
    --------
    >>> from ldpopt.design import constraints
    >>> [found.__name__ for found in types_with_parameters(constraints, ["epsilon", "delta", "eta"])]
    ['ApproximateLDP', 'TotalVariation']
    >>> types_with_parameters(constraints, ["eta"])[0].from_values({"eta": 0.3})
    TotalVariation(eta=0.3)
    """
    parameters_of = {kind: {parameter.name for parameter in kind.asks} for kind in offered_types(package)}
    complete_types = [kind for kind, parameters in parameters_of.items() if parameters <= set(names)]
    selected_types = tuple(
        kind
        for kind in complete_types
        if not any(parameters_of[kind] < parameters_of[other] for other in complete_types)
    )
    for name in names:
        if not any(name in parameters_of[kind] for kind in selected_types):
            requirements = next((parameters for parameters in parameters_of.values() if name in parameters), None)
            if requirements is None:
                parameter_names = ", ".join(sorted(set().union(*parameters_of.values())))
                raise InvalidInput(f"unknown parameter {name!r}; known are {parameter_names}")
            raise InvalidInput(f"{name} requires {' and '.join(sorted(requirements - set(names)))} as well")
    return selected_types


def command_options(package: ModuleType) -> dict[str, tuple[Parameter, ...]]:
    """List the options of commands by name.

    An option takes one value, or several of one type, joined by colons.

    Parameters
    ----------
    package : As for `offered_types`.

    Returns
    -------
    dict[str, tuple[Parameter, ...]]
        The parameters that each option sets.

    Examples
    --------
    >>> from ldpopt.design import constraints
    >>> [part.name for part in command_options(constraints)["renyi"]]
    ['renyi_order', 'renyi']
    """
    counts = Counter(parameter.name for kind in offered_types(package) for parameter in kind.asks)
    options: dict[str, tuple[Parameter, ...]] = {}
    for kind in offered_types(package):
        options |= {parameter.name: (parameter,) for parameter in kind.asks if counts[parameter.name] > 1}
        if exclusive_parameters := tuple(parameter for parameter in kind.asks if counts[parameter.name] == 1):
            options[exclusive_parameters[-1].name] = exclusive_parameters
    return options


def parameter_values(instance: Any) -> dict[str, Any]:
    """Return the values of the parameters in `asks` of the type of `instance`.

    Parameters
    ----------
    instance : An object of a registered type, such as a constraint.

    Returns
    -------
    dict[str, Any]
        The values by the name of the parameter; empty for a user-defined type.

    Examples
    --------
    >>> from ldpopt.design import RenyiLDP
    >>> parameter_values(RenyiLDP(2.0, 0.5))
    {'renyi_order': 2.0, 'renyi': 0.5}
    """
    return {
        parameter.name: getattr(instance, parameter.field or parameter.name)
        for parameter in getattr(type(instance), "asks", ())
    }


def summary_of(kind: type) -> str:
    """Return the first paragraph of the documentation of a type."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
