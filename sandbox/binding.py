"""How functions of HIP sources are called from `custom_kernel`: a small TOML file, checked before anything is built."""

from __future__ import annotations

import ast
import keyword
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from problems.spec import Frozen

_SIGNATURE = re.compile(r"^[\w:<>,&*\s]+?\b(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>.*)\)\s*;?$", re.DOTALL)
_FLAG = re.compile(
    r"-(?:O[0-3sz]|fast|D\w+(?:=[\w.+-]*)?|std=c\+\+\d\w|m[\w-]+|f[\w=-]+|mllvm|-?amdgpu[\w=.-]+)|-ffast-math"
)


class BindingError(Exception):
    """A binding that cannot be used. The message names the file and what to change."""


class _Call(Frozen):
    model_config = ConfigDict(extra="forbid", frozen=True)
    takes: tuple[str, ...] = Field(min_length=1)
    calls: tuple[str, ...] = Field(min_length=1)
    returns: str


class _Written(Frozen):
    model_config = ConfigDict(extra="forbid", frozen=True)
    board: str | None = None
    gpus: tuple[str, ...] = ()
    flags: tuple[str, ...] = ("-O3",)
    functions: dict[str, str] = Field(min_length=1)
    custom_kernel: _Call


@dataclass(frozen=True, slots=True)
class Binding:
    """A checked binding."""

    board: str | None
    gpus: tuple[str, ...]
    flags: tuple[str, ...]
    declarations: dict[str, str]
    """C++ declarations by the function's name."""
    takes: tuple[str, ...]
    """Names of the parts of `data`, in order."""
    calls: tuple[str, ...]
    """Python statements, each one call of a declared function, whose result may get a name."""
    returns: str


def read(path: Path) -> Binding:
    """The binding in `path`; `BindingError` where it is none."""
    try:
        written = _Written.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise BindingError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BindingError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BindingError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    for flag in written.flags:
        if not _FLAG.fullmatch(flag):
            raise BindingError(f"{path}: flags: {flag} is no flag that a submission needs; targets are added by pack")
    call = written.custom_kernel
    return Binding(
        written.board,
        written.gpus,
        written.flags,
        {name: _declaration(path, name, text) for name, text in written.functions.items()},
        tuple(_name(path, "takes", name) for name in call.takes),
        _calls(path, call, written.functions),
        call.returns,
    )


def _declaration(path: Path, name: str, signature: str) -> str:
    found = _SIGNATURE.match(signature.strip())
    if found is None:
        raise BindingError(
            f"{path}: functions.{name}: {signature!r} is no C++ declaration such as 'void f(torch::Tensor a)'"
        )
    if found["name"] != name:
        raise BindingError(f"{path}: functions.{name}: the declaration is of {found['name']}")
    return f"{signature.strip().rstrip(';')};"


def _name(path: Path, where: str, name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise BindingError(f"{path}: custom_kernel.{where}: {name!r} is no Python name")
    return name


def _calls(path: Path, call: _Call, functions: dict[str, str]) -> tuple[str, ...]:
    """Each statement with its function looked up in the extension; names must be known where they are used."""
    known = set(call.takes)
    made: list[str] = []
    for text in call.calls:
        target, called = _called(path, text)
        name = called.func.id if isinstance(called.func, ast.Name) else ast.unparse(called.func)
        if name not in functions:
            raise BindingError(f"{path}: custom_kernel.calls: {text!r} calls {name}, which functions does not declare")
        _check_names(path, "calls", [*called.args, *(word.value for word in called.keywords)], known)
        arguments = ast.unparse(called).partition("(")[2]
        made.append((f"{target} = " if target else "") + f"extension().{name}({arguments}")
        known |= {target} if target else set()
    _check_names(path, "returns", [_expression(path, call.returns)], known)
    return tuple(made)


def _called(path: Path, text: str) -> tuple[str, ast.Call]:
    try:
        statements = ast.parse(text).body
    except SyntaxError as error:
        raise BindingError(f"{path}: custom_kernel.calls: {text!r}: {error.msg}") from error
    match statements:
        case [ast.Expr(value=ast.Call() as call)]:
            return "", call
        case [ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call)]:
            return target, call
    raise BindingError(f"{path}: custom_kernel.calls: {text!r} is not one call, such as 'f(a, b)' or 'c = f(a, b)'")


def _expression(path: Path, text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise BindingError(f"{path}: custom_kernel.returns: {text!r}: {error.msg}") from error


def _check_names(path: Path, where: str, expressions: list[ast.expr], known: set[str]) -> None:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and node.id not in known | {"True", "False", "None"}:
                raise BindingError(
                    f"{path}: custom_kernel.{where}: {node.id} is neither taken from data nor made by a call"
                )
