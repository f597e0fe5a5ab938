"""What `load_inline` is given, as one translation unit: torch's includes, the candidate's texts, the bindings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.hipify import hipify_python

from .toolchain import HEADERS

_MODULE = re.compile(r"\bPYBIND11_MODULE\b")


@dataclass(frozen=True, slots=True)
class Unit:
    """One extension before it is built."""

    name: str
    text: str
    own: tuple[str, ...]
    """The names its lines are told under."""
    flags: tuple[str, ...]
    """As the candidate gave them."""


def assembled(
    name: str,
    cpp_sources: Any,
    cuda_sources: Any,
    functions: Any,
    flags: Sequence[str] = (),
    origin: tuple[str, str] = ("", ""),
) -> Unit:
    """The unit of one call of `load_inline`.

    C++ sources come first, as they declare what the others define. `origin`: name and text of the file the call is in,
    so that lines are that file's wherever it holds a source word for word.
    """
    numbered: list[tuple[str, str]] = []
    for kind, given in (("cpp", cpp_sources), ("hip", cuda_sources)):
        numbered += [(f"{name}.{kind}", source) for source in _listed(given)]
    parts = [f'#line 1 "{name}.includes"', *(f"#include <{header}>" for header in HEADERS)]
    own: list[str] = []
    for label, source in numbered:
        file, line = _place(source, label, origin)
        own.append(file)
        parts += [f'#line {line} "{file}"', hipified(source)]
    parts += [f'#line 1 "{name}.bindings"', bindings(functions)]
    return Unit(_plain(name), "\n".join(parts) + "\n", tuple(dict.fromkeys([*own, f"{name}.bindings"])), tuple(flags))


def bindings(functions: Any) -> str:
    """The module that torch writes for `functions`: names, or names with their descriptions."""
    if functions is None:
        return ""
    named = functions if isinstance(functions, Mapping) else {function: function for function in _listed(functions)}
    lines = [f'  m.def("{function}", torch::wrap_pybind_function({function}), "");' for function in named]
    return "\n".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"])


def from_files(name: str, sources: Any, flags: Sequence[str] = ()) -> Unit:
    """The unit of one call of `load`: the text of all its files, those without kernels first."""
    paths = sorted((Path(source) for source in _listed(sources)), key=lambda path: path.suffix in (".cu", ".hip"))
    unit = assembled(name, [path.read_text() for path in paths], None, None, flags)
    if not _MODULE.search(unit.text):
        raise ValueError(f"none of the sources of {name} defines PYBIND11_MODULE")
    return unit


def hipified(source: str) -> str:
    """CUDA's names as torch's hipify makes them HIP's on a ROCm build; other text as it is."""
    if "cuda" not in source.lower() and "CUfunction" not in source:
        return source
    renamed = hipify_python.RE_PYTORCH_PREPROCESSOR.sub(_hip_name, source)
    return re.sub(r"#include\s*[<\"](?:hip/)?hip_runtime\.h[>\"]", "#include <hip/hip_runtime.h>", renamed)


def caller() -> tuple[str, str]:
    """Name and text of the submission's file that the innermost call of it stands in; empty where there is none."""
    for frame in inspect.stack(context=0)[1:]:
        if frame.filename.endswith("submission.py"):
            try:
                return "submission.py", Path(frame.filename).read_text()
            except OSError:
                break
    return "", ""


def _hip_name(match: re.Match[str]) -> str:
    found: Any = hipify_python.PYTORCH_MAP[match.group(0)]
    return str(found)


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, str | Path) else list(given)


def _place(source: str, label: str, origin: tuple[str, str]) -> tuple[str, int]:
    file, text = origin
    at = text.find(source) if len(source) > 1 else -1
    return (file, text.count("\n", 0, at) + 1) if at >= 0 else (label, 1)


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", str(name))[:64] or "extension"
