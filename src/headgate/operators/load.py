"""From 'package.module:function' to a function that can be called, if the administrator allows it.

Statements come from users who must not run code of their choice. So the administrator who starts
the run names the modules that operators may come from: `city.operators` allows that module and
those below it. The check comes first; nothing is imported before it, not even a parent package.

Every error names the operator, what is wrong with it, and the nearest name that would be right.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType

from headgate.model.atoms import Call, Variable
from headgate.model.errors import OperatorError, did_you_mean, printable
from headgate.operators.declaration import Declaration, Form, form_of

OWN_MODULES = ("headgate.operators.examples",)
"""Allowed without being named."""


@dataclass(frozen=True, slots=True)
class LoadedOperator:
    declaration: Declaration
    function: Callable[..., object]
    form: Form

    @property
    def name(self) -> str:
        return self.declaration.name


def load(declaration: Declaration, allowed: Sequence[str] = ()) -> LoadedOperator:
    """Import the operator's function and see that it fits its declaration."""
    module_name, _, function_name = declaration.target.partition(":")
    check_allowed(declaration, allowed)
    function = _function(_module(module_name, declaration), function_name, declaration)
    form = form_of(function)
    unknown = [each for each in form.binds or () if each not in dict(declaration.parameters)]
    if unknown:
        raise _error(
            declaration,
            f"it binds '{unknown[0]}', which is not among the declared parameters",
            did_you_mean(unknown[0], dict(declaration.parameters)),
        )
    _check_signature(function, form, declaration)
    return LoadedOperator(declaration, function, form)


def load_all(
    declarations: Iterable[Declaration], allowed: Sequence[str] = ()
) -> tuple[dict[str, LoadedOperator], dict[str, str]]:
    """The operators that can be loaded, and the reasons why others cannot."""
    loaded: dict[str, LoadedOperator] = {}
    refused: dict[str, str] = {}
    for declaration in declarations:
        try:
            loaded[declaration.name] = load(declaration, allowed)
        except OperatorError as error:
            refused[declaration.name] = str(error)
    return loaded, refused


def is_allowed(module: str, allowed: Sequence[str]) -> bool:
    """Whether the module is one of these, or below one of them.

    >>> is_allowed("city.operators", ["city"]), is_allowed("cityhall", ["city"])
    (True, False)
    """
    return any(module == each or module.startswith(f"{each}.") for each in (*OWN_MODULES, *allowed))


def check_allowed(declaration: Declaration, allowed: Sequence[str]) -> None:
    module, colon, function = declaration.target.partition(":")
    if not (colon and function.isidentifier() and all(map(str.isidentifier, module.split(".")))):
        raise _error(declaration, "its target is not written as 'package.module:function'")
    if not is_allowed(module, allowed):
        raise _error(
            declaration,
            f"module '{module}' is not allowed here",
            f"allow it with --operators {module} when starting the run",
        )


def check_call(declaration: Declaration, form: Form, call: Call) -> None:
    """Raise `OperatorError` where the operator cannot be called like this."""
    parameters = declaration.parameters
    if len(call.arguments) != len(parameters):
        raise OperatorError(
            f"operator '{declaration.name}' takes {len(parameters)} arguments, "
            f"not {len(call.arguments)}"
        )
    for (name, _), argument in zip(parameters, call.arguments, strict=True):
        if isinstance(argument, Variable) and form.binds is not None and name not in form.binds:
            raise OperatorError(
                f"operator '{declaration.name}' finds no values for '{name}': "
                f"give it a constant in place of ?{argument.name}"
            )


def _module(name: str, declaration: Declaration) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module itself, or something that it imports?
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            near = did_you_mean(name, _sibling_modules(error.name))
            raise _error(declaration, f"there is no module '{error.name}'", near) from None
        raise _import_failure(declaration, name, error) from error
    except (Exception, SystemExit) as error:
        raise _import_failure(declaration, name, error) from error


def _sibling_modules(name: str) -> list[str]:
    """The other modules of the package in which the module was looked for."""
    package, _, _ = name.rpartition(".")
    if not package:
        return []
    path = getattr(importlib.import_module(package), "__path__", ())
    return [f"{package}.{each.name}" for each in pkgutil.iter_modules(path)]


def _function(module: ModuleType, name: str, declaration: Declaration) -> Callable[..., object]:
    attribute = getattr(module, name, None)
    if attribute is None:
        functions = [each for each in vars(module) if callable(getattr(module, each))]
        raise _error(
            declaration,
            f"module '{module.__name__}' has no function '{name}'",
            did_you_mean(name, functions),
        )
    if not callable(attribute) or inspect.isclass(attribute):
        described = (
            "a class" if inspect.isclass(attribute) else f"of type {type(attribute).__name__}"
        )
        raise _error(declaration, f"'{declaration.target}' is {described}, not a function")
    if inspect.iscoroutinefunction(attribute) or inspect.isasyncgenfunction(attribute):
        raise _error(declaration, f"'{declaration.target}' is asynchronous")
    function: Callable[..., object] = attribute
    return function


def _check_signature(function: Callable[..., object], form: Form, declaration: Declaration) -> None:
    passed = [name for name, _ in declaration.parameters if name not in (form.binds or ())]
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # some C functions have no signature; the first call shows
    try:
        signature.bind(*range(1 + len(passed)))
    except TypeError:
        first = "batch" if form.batch else "item"
        raise _error(
            declaration,
            f"'{declaration.target}' takes {signature}, but will be called with "
            f"({', '.join([first, *passed])})",
        ) from None


def _import_failure(declaration: Declaration, module: str, error: BaseException) -> OperatorError:
    reason = f"{type(error).__name__}: {error}"
    return _error(declaration, f"module '{module}' cannot be imported: {reason}")


def _error(declaration: Declaration, message: str, hint: str = "") -> OperatorError:
    text = f"operator '{declaration.name}': {message}" + (f"; {hint}" if hint else "")
    return OperatorError(printable(text))
