"""What a candidate launched and what the compiler made of it: the evidence behind the `kernels` answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

MAX_TEXT_BYTES = 96 << 20
"""TTIR and ISA text in one answer; kernels past it are named without their text, so the frame stays within bounds."""

_METADATA = (
    "arch",
    "num_warps",
    "num_stages",
    "num_ctas",
    "shared",
    "warp_size",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
    "enable_fp_fusion",
    "schedule_hint",
)


class Record:
    """Kernels, one per target and specialisation, and launches in order."""

    def __init__(self) -> None:
        self.kernels: list[dict[str, Any]] = []
        self.launches: list[dict[str, Any]] = []
        self.call = -1
        """Number of the call being served, from 0; -1 while the candidate is imported."""
        self._tuning = 0
        self._index: dict[tuple[str, str], int] = {}
        self._faults: list[BaseException] = []

    @property
    def tuning(self) -> bool:
        """Whether the launches now are an autotuner's or a benchmark's, not the call's own."""
        return self._tuning > 0

    @contextlib.contextmanager
    def as_tuning(self) -> Iterator[None]:
        """Mark the launches inside as tuning."""
        self._tuning += 1
        try:
            yield
        finally:
            self._tuning -= 1

    def compiled(self, kernel: Any, target: str) -> int:
        """Note a `CompiledKernel`, once; its index."""
        key = (target, str(kernel.metadata.hash))
        if key not in self._index:
            self._index[key] = len(self.kernels)
            self.kernels.append(_describe(kernel, target))
        return self._index[key]

    def noted(self, kernel: dict[str, Any]) -> int:
        """Note a kernel that Triton did not build, described as evidence, once; its index."""
        key = (str(kernel["target"]), str(kernel["hash"]))
        if key not in self._index:
            self._index[key] = len(self.kernels)
            self.kernels.append(kernel)
        return self._index[key]

    def index_of(self, target: str, kernel_hash: str) -> int:
        """Index of a kernel noted before."""
        return self._index[target, kernel_hash]

    def failed(self, fault: BaseException, target: str, kernel: Any | None = None, **unbuilt: Any) -> None:
        """Note a kernel that did not build for `target`, or built and does not fit it (`kernel`)."""
        message = f"{type(fault).__name__}: {fault}"
        self._faults.append(fault)
        if kernel is not None:
            self.kernels[self.compiled(kernel, target)]["error"] = message
            return
        blank = {"name": "", "hash": "", "ttir": "", "amdgcn": "", "metadata": {}, "signature": {}, "constants": {}}
        self.kernels.append({**blank, **unbuilt, "target": target, "error": message})

    def is_build_fault(self, error: BaseException) -> bool:
        """Whether `error`, or what it was raised from, is a kernel that did not build."""
        chain = list(causes(error))
        kinds = {type(link).__name__ for link in chain}
        return "OutOfResources" in kinds or any(link is fault for link in chain for fault in self._faults)

    def launched(self, index: int, grid: tuple[int, int, int], arguments: dict[str, Any]) -> None:
        """Note one launch; pointers are left out of its arguments."""
        scalars = {name: value for name, value in arguments.items() if type(value) in (int, float, bool)}
        launch = {"kernel": index, "grid": list(grid), "args": scalars, "call": self.call, "tuning": self.tuning}
        self.launches.append(launch)

    def payload(self, after: int) -> bytes:
        """Every kernel, and the launches from number `after`, as JSON."""
        left, kernels = MAX_TEXT_BYTES, []
        for kernel in self.kernels:
            left -= len(kernel["ttir"]) + len(kernel["amdgcn"])
            kernels.append(kernel if left >= 0 else {**kernel, "ttir": "", "amdgcn": ""})
        # Non-finite scalar arguments are not JSON; the estimate needs sizes only.
        return json.dumps({"kernels": kernels, "launches": _finite(self.launches[after:])}).encode()


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, what it was raised from, and so on."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def describe_source(source: Any) -> dict[str, Any]:
    """Signature and constants of an `ASTSource`; a constant's path in a tuple argument is spelled ``x.0``."""
    names = getattr(getattr(source, "fn", None), "arg_names", ())

    def spell(path: Any) -> str:
        first, *rest = path if isinstance(path, tuple) else (path,)
        head = names[first] if isinstance(first, int) and first < len(names) else str(first)
        return ".".join([head, *map(str, rest)])

    constants = {spell(path): repr(_plain(value)) for path, value in (getattr(source, "constants", None) or {}).items()}
    signature = {str(name): str(kind) for name, kind in (getattr(source, "signature", None) or {}).items()}
    return {"signature": signature, "constants": constants}


def _describe(kernel: Any, target: str) -> dict[str, Any]:
    metadata = kernel.metadata
    return {
        "name": str(metadata.name),
        "target": target,
        "hash": str(metadata.hash),
        "ttir": _text(kernel, "ttir"),
        "amdgcn": _text(kernel, "amdgcn"),
        "metadata": {name: getattr(metadata, name) for name in _METADATA if hasattr(metadata, name)},
        **describe_source(kernel.src),
        "error": None,
    }


def _text(kernel: Any, stage: str) -> str:
    text = dict(kernel.asm).get(stage, "")
    return text if isinstance(text, str) else ""


def _plain(value: Any) -> Any:
    return getattr(value, "value", value) if type(value).__name__ == "constexpr" else value


def _finite(launches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def keep(value: Any) -> bool:
        return type(value) is not float or abs(value) < float("inf")

    return [{**launch, "args": {k: v for k, v in launch["args"].items() if keep(v)}} for launch in launches]
