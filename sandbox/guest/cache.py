"""Triton's cache of compiled kernels, carried from one guest of a candidate to the next guest of that same candidate.

Both ends are the candidate's own processes; what lies between, the checker, only counts the bytes. So this is no gate:
it keeps to bounds, writes nowhere but into the cache's folder, and leaves out what it cannot make sense of.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_BYTES = 48 << 20
MAX_FILES = 4096
_LENGTH = struct.Struct("<I")
_GROUP = "__grp__"
"""Triton's list of the files that belong to one kernel, with their absolute paths."""
_NAME = re.compile(r"[A-Za-z0-9]{16,128}/(?!\.)[^/\x00]{1,250}")


class Cache:
    """The cache of this process, as it grows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: set[str] = set()

    def begin(self) -> None:
        """From here on what comes in is the candidate's."""
        self._before = {path.name for path in self._kernels()}

    def pack(self) -> bytes:
        """All that came in since `begin`, whole kernels, up to `MAX_BYTES`: an index as JSON, then the contents."""
        index: list[tuple[str, int]] = []
        parts: list[bytes] = []
        left = MAX_BYTES - (1 << 20)
        for kernel in self._kernels():
            found = _files(kernel) if kernel.name not in self._before else []
            left -= sum(map(len, (content for _, content in found)))
            if left < 0 or len(index) + len(found) > MAX_FILES:
                break
            index += [(name, len(content)) for name, content in found]
            parts += [content for _, content in found]
        head = json.dumps(index).encode()
        return b"".join([_LENGTH.pack(len(head)), head, *parts])

    def unpack(self, packed: bytes) -> int:
        """Put in what another guest packed, without touching what is there; how many files. Nothing of a bad pack."""
        count = 0
        for name, content in _read(packed):
            path = self._folder / name
            if path.name.startswith(_GROUP):
                content = _moved(content, path.parent)
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    count += file.write(content) == len(content)
        return count

    def _kernels(self) -> list[Path]:
        """The folders of single kernels, the oldest first."""
        with contextlib.suppress(OSError):
            return sorted(
                (path for path in self._folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime
            )
        return []


def own() -> Cache:
    """The cache that Triton uses in this process."""
    return Cache(Path(os.environ["TRITON_CACHE_DIR"]))


def _files(kernel: Path) -> list[tuple[str, bytes]]:
    """A kernel's files, its list last: who reads while they are put in finds no kernel, never half of one."""
    with contextlib.suppress(OSError):
        paths = [path for path in kernel.iterdir() if path.is_file() and path.stat().st_size <= MAX_BYTES]
        ordered = sorted(paths, key=lambda path: path.name.startswith(_GROUP))
        return [(f"{kernel.name}/{path.name}", path.read_bytes()) for path in ordered]
    return []


def _read(packed: bytes) -> Iterator[tuple[str, bytes]]:
    at = _LENGTH.size
    try:
        (length,) = _LENGTH.unpack(packed[:at])
        index = json.loads(packed[at : at + length]) if length <= MAX_BYTES // 16 else []
        sizes = [size for name, size in index if type(size) is int and size >= 0 and _NAME.fullmatch(name)]
    except (ValueError, TypeError, RecursionError, struct.error):
        return
    if len(sizes) != len(index) or len(sizes) > MAX_FILES or at + length + sum(sizes) != len(packed):
        return
    at += length
    for name, size in index:
        yield name, packed[at : at + size]
        at += size


def _moved(group: bytes, folder: Path) -> bytes:
    """A list of files with their paths in `folder`; the list as it is where it is none."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        told: dict[str, Any] = json.loads(group)
        return json.dumps({"child_paths": {name: str(folder / name) for name in told["child_paths"]}}).encode()
    return group
