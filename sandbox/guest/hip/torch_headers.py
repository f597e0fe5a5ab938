"""Whose fault an error about torch's C++ interface is: the candidate's, or our stand-in's, which is not all of it."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from torch.utils import cpp_extension

from .errors import Fault
from .toolchain import INCLUDE

BESIDE = INCLUDE / "torch_beside"
"""What a CPU build of torch lacks of a GPU's."""
_MISSING = re.compile(r"no (?:member|type|template) named '(?P<name>\w+)' in (?:namespace )?'(?:at|torch|c10)\b")
_HEADER = re.compile(r"'(?P<name>(?:torch|ATen|c10)/[\w/.]+)' file not found")
_MISMATCH = re.compile(r"no (?:matching|viable)|cannot (?:initialize|convert)|no argument of this type|AT_DISPATCH")
_OURS = re.compile(r"kernelwright_\w+\.h|torch_stand_in|at::|torch::|c10::")
_NAMING = (
    *("ATen/core/TensorBody.h", "ATen/core/TensorBase.h", "c10/core/TensorOptions.h", "c10/core/ScalarType.h"),
    *("c10/core/Device.h", "torch/csrc/api/include/torch/types.h", "torch/csrc/api/include/torch/utils.h"),
)


def folders() -> tuple[Path, ...]:
    """Include folders of torch's own headers, of what goes beside them, and of Python's."""
    python = Path(sysconfig.get_path("include"))
    return (BESIDE, *map(Path, cpp_extension.include_paths()), python)


def unknown(faults: Iterable[Fault]) -> bool:
    """Whether every fault is a torch name or header that torch has and the stand-in has not."""
    told = list(faults)
    return bool(told) and all(_is_lack(fault) for fault in told)


def doubtful(faults: Iterable[Fault]) -> bool:
    """Whether any fault may be the stand-in's: only torch's own headers can tell."""
    return any(
        _is_lack(fault) or (_MISMATCH.search(fault.message) and _OURS.search(f"{fault.message} {fault.hint}"))
        for fault in faults
    )


def _is_lack(fault: Fault) -> bool:
    if found := _MISSING.search(fault.message):
        return _is_named(found["name"])
    if found := _HEADER.search(fault.message):
        return any((folder / found["name"]).exists() for folder in folders())
    return False


def _is_named(name: str) -> bool:
    home = Path(cpp_extension.include_paths()[0])
    return (home / "ATen" / "ops" / f"{name}.h").exists() or re.search(rf"\b{name}\b", _text(home)) is not None


@lru_cache(maxsize=1)
def _text(home: Path) -> str:
    return "\n".join((home / name).read_text() for name in _NAMING if (home / name).exists())
