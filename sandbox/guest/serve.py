"""The guest's loop: one candidate, one frame in, one frame out, until the checker hangs up."""

from __future__ import annotations

import functools
import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import cache, profile, wire
from .foreign import Foreign
from .memory import Buffer
from .mode import GuestMode, Kernel, Took
from .record import Record, causes
from .tree import Encoder, decode, moved

_SOURCE_NAME = "submission.py"
_NOT_SHOWN = (str(Path(__file__).parent), "<frozen importlib")
"""Files whose frames say nothing to a candidate's author."""
_EMULATION = ("triton/runtime/interpreter.py", "guest/gpu_stand_in.py", "hip/inline.py")
"""Where an emulated construct (inline assembly, CUDA graphs) ends in `NotImplementedError`."""

MAX_TREE_BYTES = 900 << 10
"""Longest description of a result; leaves room in a header of `wire.MAX_HEADER`."""


class Guest:
    """Serves one candidate in one mode, with its source and its caches in `workplace`."""

    def __init__(self, mode: GuestMode, workplace: Path) -> None:
        self._mode = mode
        self._workplace = workplace
        self._kernel: Kernel | None = None
        self._say: Callable[[dict[str, Any]], None] = lambda _: None
        self._buffers: dict[int, Buffer] = {}
        self._cache = cache.own()
        self._foreign: Foreign | None = None

    def serve(self, sock: socket.socket) -> None:
        """Say ready, answer frames, return when the other side is gone."""
        self._say = functools.partial(wire.send, sock)
        try:
            wire.send(sock, {"op": "ready", "versions": self._mode.versions()})
            while True:
                header, payload = self._answer(wire.receive(sock))
                wire.send(sock, header, payload)
        except wire.WireError:
            return

    def _answer(self, frame: wire.Frame) -> tuple[dict[str, Any], bytes]:
        match frame.op:
            case "load":
                return self._load(frame.payload.decode()), b""
            case "stock":
                return {"op": "stocked", "files": self._cache.unpack(frame.payload)}, b""
            case "cache":
                self._mode.evidence(0)
                return {"op": "cache"}, self._cache.pack()
            case "buffers":
                return self._map(frame), b""
            case "call":
                return self._call(frame.header), b""
            case "empty":
                return self._empty(frame.header), b""
            case "burst":
                return self._burst(frame.header), b""
            case "profile":
                return self._profile(frame.header)
            case "kernels":
                return {"op": "kernels"}, self._mode.evidence(int(frame.header.get("after", 0)))
            case "problem":
                return self._tried(lambda: self._open(frame)), b""
            case "build":
                return self._tried(lambda: self._build(frame.header)), b""
            case _:
                return self._tried(lambda: self._elsewhere(frame.header)), b""

    def _tried(self, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What it answers, or that code from elsewhere raised."""
        try:
            return act()
        except BaseException as error:  # noqa: BLE001 - it may raise anything, SystemExit too
            return {"op": "raised", "kind": "run", "log": _log(error)}

    def _open(self, frame: wire.Frame) -> dict[str, Any]:
        """Take a problem's files, and import its reference where it is to run here."""
        files, at = {}, 0
        for name, size in frame.header["files"]:
            files[name], at = frame.payload[at : at + size], at + size
        self._foreign = Foreign(self._mode, self._workplace, frame.header["kind"], files)
        if frame.header["run"]:
            self._foreign.prepare()
        return {"op": "problem"}

    def _build(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Make a candidate's ModelNew from what the reference's model was made from."""
        foreign, model = self._opened(), sys.modules["submission"].ModelNew
        for buffer in self._buffers.values():
            buffer.fetch()
        self._kernel = foreign.built(model, foreign.decoded(header["data"], self._buffers))
        return {"op": "built"}

    def _elsewhere(self, header: Mapping[str, Any]) -> dict[str, Any]:
        for buffer in self._buffers.values():
            buffer.fetch()
        return self._opened().answer(header, self._buffers)

    def _opened(self) -> Foreign:
        if self._foreign is None:
            raise ValueError("unknown op, or a problem's files have not been given")
        return self._foreign

    def _decoded(self, tree: Mapping[str, Any]) -> Any:
        return self._foreign.decoded(tree, self._buffers) if self._foreign else decode(tree, self._buffers)

    def _load(self, source: str) -> dict[str, Any]:
        """Import the candidate as module `submission`, from a file: Triton and `inspect` read its source there."""
        path = self._workplace / _SOURCE_NAME
        path.write_text(source)
        self._cache.begin()
        try:
            modelled = self._foreign is not None and self._foreign.kind == "kernelbench"
            with self._mode.running():
                self._kernel = _import(path, "ModelNew" if modelled else "custom_kernel")
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything, SystemExit too
            return {"op": "failed", "kind": "unsupported" if _is_lack(error) else "build", "log": _log(error)}
        return {"op": "loaded"}

    def _map(self, frame: wire.Frame) -> dict[str, Any]:
        """Replace the buffers. Old ones live on where the candidate kept a tensor in them."""
        items = frame.header["items"]
        if len(items) != len(frame.fds):
            raise wire.WireError(f"{len(items)} buffers with {len(frame.fds)} descriptors")
        self._buffers = {
            item["id"]: self._mode.map_buffer(item["kind"], descriptor, item["bytes"])
            for item, descriptor in zip(items, frame.fds, strict=True)
        }
        return {"op": "mapped"}

    def _call(self, header: Mapping[str, Any]) -> dict[str, Any]:
        record = self._mode.record
        record.call += 1
        try:
            tree, took = self._run(header)
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything, SystemExit too
            return {"op": "raised", "kind": _kind(error, record), "log": _log(error)}
        timed = {"event_us": took.us, "late_us": took.late_us, "exposed": took.exposed} if took else {"event_us": None}
        return {"op": "returned", "tree": tree, **timed}

    def _empty(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Everything a timed call does but the kernel, for a checker that wants to know what that costs."""
        for buffer in self._buffers.values():
            buffer.fetch()
        self._decoded(header["data"])
        took = self._mode.empty(int(header["copied"]), int(header["head_start"]))
        for buffer in self._buffers.values():
            buffer.publish()
        self._mode.settle()
        nothing = {"t": "value", "value": None}
        told = {"event_us": took.head_us, "pair_us": took.pair_us, "late_us": took.late_us} if took else {}
        return {"op": "returned", "tree": nothing, **told}

    def _burst(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Many calls, queued behind a gate that the checker opens once it is told that they are."""
        gate, count = self._buffers[header["gate"]].shared, int(header["count"])
        if "data" not in header:
            copied = int(header["copied"])
            self._mode.empty_burst(count, copied, gate, lambda: self._say({"op": "queued", "tree": None}))
            return {"op": "returned"}
        kernel = self._kernel
        if kernel is None:
            raise RuntimeError("called before a candidate was loaded")
        batch = [self._decoded(moved(header["data"], index * header["apart"])) for index in range(count)]
        self._mode.record.call += count

        def queued(results: list[Any]) -> None:
            # Where the results will lie is known by now, and their copies are queued like the kernels.
            tree = Encoder(self._buffers, header["result"], self._mode.device_type).encode(results)
            self._say({"op": "queued", "tree": tree})

        try:
            self._mode.burst(kernel, batch, gate, queued)
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything, SystemExit too
            return {"op": "raised", "kind": _kind(error, self._mode.record), "log": _log(error)}
        return {"op": "returned"}

    def _profile(self, header: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        kernel = self._kernel
        if kernel is None:
            raise RuntimeError("called before a candidate was loaded")
        data = self._decoded(header["data"])
        return {"op": "profiled"}, profile.take(lambda: kernel(data))

    def _run(self, header: Mapping[str, Any]) -> tuple[dict[str, Any], Took | None]:
        if self._kernel is None:
            raise RuntimeError("called before a candidate was loaded")
        result_buffer, join = header.get("result"), bool(header.get("join", True))
        inputs = [buffer for number, buffer in self._buffers.items() if number != result_buffer]
        for buffer in inputs:
            buffer.fetch()
        data = self._decoded(header["data"])
        if "board" in header:
            result, took = self._mode.board_call(self._kernel, data, **header["board"])
        else:
            result, took = self._mode.call(self._kernel, data, int(header.get("head_start", 0)), join)
        result = self._foreign.simple(result) if self._foreign else result
        tree = Encoder(self._buffers, result_buffer, self._mode.device_type).encode(result)
        for buffer in self._buffers.values():
            buffer.publish()
        self._mode.settle(join)
        if len(repr(tree)) > MAX_TREE_BYTES:
            raise ValueError("the returned value has too many parts to describe")
        return tree, took


def _import(path: Path, wanted: str) -> Kernel:
    specification = importlib.util.spec_from_file_location("submission", path)
    if specification is None or specification.loader is None:
        raise ImportError(f"cannot import {path.name}")
    module = importlib.util.module_from_spec(specification)
    sys.modules["submission"] = module
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    specification.loader.exec_module(module)
    kernel = getattr(module, wanted, None)
    if not callable(kernel):
        missing = "function custom_kernel(data)" if wanted == "custom_kernel" else f"class {wanted}"
        raise ImportError(f"the submission defines no {missing}")
    return kernel


def _kind(error: BaseException, record: Record) -> str:
    """``build``: a kernel did not compile or fit; ``unsupported``: the emulation lacks something; else ``run``."""
    if record.is_build_fault(error):
        return "build"
    return "unsupported" if _is_lack(error) else "run"


def _is_lack(error: BaseException) -> bool:
    """Whether it comes of something that the emulation does not do."""
    return any(isinstance(link, NotImplementedError) and _raised_by_emulation(link) for link in causes(error))


def _raised_by_emulation(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.endswith(_EMULATION)


def _log(error: BaseException) -> str:
    """The traceback as the candidate's author needs it: the submission's own frames, and the innermost one."""
    whole = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = whole
    while link is not None:
        link.stack = _own_frames(link.stack)
        if isinstance(error, SyntaxError) and link is whole:
            link.filename = _SOURCE_NAME
        link = link.__cause__ or link.__context__
    return "".join(whole.format())[-wire.MAX_LOG :]


def _own_frames(stack: traceback.StackSummary) -> traceback.StackSummary:
    own = [frame for frame in stack if frame.filename.endswith(_SOURCE_NAME)]
    foreign = stack[-1:] if stack and stack[-1] not in own and not stack[-1].filename.startswith(_NOT_SHOWN) else []
    for frame in [*own, *foreign]:
        # Where this machine keeps its files is nothing an author can use.
        frame.filename = _SOURCE_NAME if frame in own else frame.filename.rpartition("site-packages/")[2]
    return traceback.StackSummary.from_list([*own, *foreign])
