"""``kernelwright pack``: one submission file of HIP sources and a binding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.console import say
from kernelwright.status import UsageError


def pack(
    sources: Annotated[list[Path], typer.Argument(help="HIP sources, in the order they are put together.")],
    binding: Annotated[Path, typer.Option("--binding", help="The TOML file that says what is called, and how.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The submission to write.")] = Path("submission.py"),
    include: Annotated[
        list[Path] | None, typer.Option("-I", help="A folder for headers that do not lie beside their source.")
    ] = None,
) -> None:
    """Make one submission of HIP sources: headers inlined, launches on torch's current queue, built once and cached.

    The binding holds `functions` (name = "C++ declaration"), `custom_kernel` (takes, calls, returns) and, where wanted,
    `board`, `gpus` and `flags`. Nothing is compiled here: `kernelwright check` does that with the result.
    """
    from sandbox.binding import BindingError, read
    from sandbox.packing import PackError, packed

    missing = [path for path in [*sources, binding] if not path.is_file()]
    if missing:
        raise UsageError(f"cannot read {missing[0]}: give paths of files that are there")
    try:
        text = packed(sources, read(binding), include or [])
    except (BindingError, PackError) as error:
        raise UsageError(str(error)) from error
    try:
        output.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    say(f"{output}: {len(text.encode())} bytes, from {len(sources)} source{'s' * (len(sources) > 1)}")
