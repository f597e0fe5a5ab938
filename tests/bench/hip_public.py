"""How many public HIP kernels compile for gfx942 and gfx950 here, what they hold, and why the others do not.

``python -m tests.bench.hip_public FOLDER [--page FILE]``: FOLDER holds checkouts, ``<owner>+<name>`` each, of what
`hip_public.toml` lists. Each source is compiled in a guest of its own, as a candidate's is. Prints a table; with
``--page`` writes it as a page.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.checker.guest import Guest, Raised
from sandbox.checker.pool import environment, limits
from sandbox.includes import IncludeError, inlined
from sandbox.isolation import choose

LIST = Path(__file__).with_suffix(".toml")
TARGETS = ("gfx942", "gfx950")
DEADLINE_S = 300.0
MARK = "COMPILED "
PROGRAM = """
import json, os, re, sys, tempfile, time
from pathlib import Path
import torch
from guest.hip import build, inline, kernels, toolchain, unit

TEXT, IN_PYTHON, FRAGMENT, MAIN = {text!r}, {python!r}, {fragment!r}, {main!r}
COUNTS = dict(vgpr="vgpr_count", agpr="agpr_count", spills="vgpr_spill_count", lds="group_segment_fixed_size",
              scratch="private_segment_fixed_size")
units = []


def keep(self, one):
    units.append(one)
    return __import__("types").SimpleNamespace()


def of_python():
    inline.Inline.built = keep
    # Submissions of several ranks import names of the board's reference for annotations.
    stub = type(sys)("reference")
    stub.MoEConfig = type("MoEConfig", (), {{}})
    sys.modules.setdefault("reference", stub)
    try:
        exec(compile(TEXT, "submission.py", "exec"), dict(__name__="submission"))
    except BaseException as error:
        if not units:
            said = f"not imported: {{type(error).__name__}}: {{error}}"
            raise RuntimeError(MARK + json.dumps(dict(error=said[:300])))
    return units


def sources():
    if IN_PYTHON:
        return [source(one) for one in units or of_python()]
    if FRAGMENT:
        return [source(unit.assembled("public", None, TEXT, None))]
    return [build.Source("public", TEXT, ("public.hip",), (), (inline.STAND_IN,))]


def source(one):
    flags = (*inline.TORCH, *build.safe_flags(one.flags))
    return build.Source(one.name, one.text, one.own, flags, (inline.STAND_IN,))


def counted(kernel):
    def number(pattern):
        return int((re.search(pattern + r"(\\d+)", kernel.assembly) or [0, 0])[1])

    found = {{name: number(rf"\\.{{key}}:\\s+") for name, key in COUNTS.items()}}
    size = number("; codeLenInByte = ")
    products = len(re.findall(r"^\\s+v_mfma", kernel.assembly, re.MULTILINE))
    return dict(name=kernel.name.partition("(")[0][:90], code=size, mfma=products, **found)


MARK = {mark!r}
compiler, folder, told = toolchain.find(os.environ), Path(tempfile.mkdtemp()), dict()
for target in {targets!r}:
    begun, found = time.perf_counter(), []
    try:
        for one in sources():
            assembly = build.compile_for(compiler, one, target, folder)
            found += [counted(kernel) for kernel in kernels.kernels(assembly)]
    except build.BuildError as error:
        faults = error.faults
        told[target] = dict(error=faults[0].text()[:400] if faults else str(error)[:400], errors=len(faults))
        continue
    named = [kernel for kernel in found if MAIN and MAIN in kernel["name"]] or found
    told[target] = dict(count=len(found), seconds=round(time.perf_counter() - begun, 2),
                        main=max(named, key=lambda kernel: (kernel["mfma"], kernel["code"]), default=None))
raise RuntimeError(MARK + json.dumps(told))
"""


@dataclass(frozen=True)
class Public:
    """One kernel of the list."""

    name: str
    repo: str
    commit: str
    path: str
    kind: str
    """``hip``; ``fragment``, which leaves torch's includes to `load_inline`; or ``python``."""
    main: str
    include: tuple[str, ...] = ()
    before: str = ""
    """Ours, put before a fragment: the includes that its own build adds."""
    published: str = ""


@dataclass
class Result:
    """What came of it: by target, or why it was not tried."""

    kernel: Public
    by_target: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0


def listed() -> list[Public]:
    """The list, in its order."""
    rows = tomllib.loads(LIST.read_text())["kernel"]
    return [
        Public(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]


def compiled(kernel: Public, folder: Path) -> Result:
    """Compile one in a guest of its own."""
    place = folder / kernel.repo.replace("/", "+")
    begun = time.monotonic()
    try:
        search = [place / path for path in kernel.include]
        text = (
            inlined(place / kernel.path, search, required=False)
            if kernel.kind != "python"
            else (place / kernel.path).read_text()
        )
    except (IncludeError, OSError) as error:
        return Result(kernel, {target: {"error": str(error)} for target in TARGETS})
    program = PROGRAM.format(
        text=f"{kernel.before}\n#line 1\n{text}" if kernel.before else text,
        python=kernel.kind == "python",
        fragment=kernel.kind == "fragment",
        main=kernel.main,
        mark=MARK,
        targets=TARGETS,
    )
    guest = Guest("capture", TARGETS[:1], choose(), environment(), limits("capture"))
    try:
        guest.await_ready()
        guest.load(program, DEADLINE_S)
    except Raised as raised:
        said = json.loads(raised.log.rpartition(MARK)[2]) if MARK in raised.log else {"error": raised.reason}
        if "error" in said:
            said = dict.fromkeys(TARGETS, said)
        return Result(kernel, said, time.monotonic() - begun)
    finally:
        guest.kill()
    return Result(kernel, {target: {"error": "nothing was said"} for target in TARGETS})


def row(result: Result) -> str:
    """One line of the page's table."""
    kernel = result.kernel
    link = f"[{kernel.name}](https://github.com/{kernel.repo}/blob/{kernel.commit}/{kernel.path})"
    cells = [f"{link}, {kernel.repo}@{kernel.commit[:7]}"]
    for target in TARGETS:
        found = result.by_target.get(target, {})
        main = found.get("main")
        if main is None:
            cells += ["no", "", "", ""]
            continue
        cells += [f"{found['count']} in {found['seconds']:.1f} s", f"{main['vgpr']} / {main['agpr']}", f"{main['lds']}",
                  f"{main['scratch']} / {main['spills']}"]  # fmt: skip
    return "| " + " | ".join([*cells, kernel.published or "none found"]) + " |"


def reasons(results: list[Result]) -> list[str]:
    """Why what does not compile does not, one line a kernel and target."""
    lines = []
    for result in results:
        for target in TARGETS:
            found = result.by_target.get(target, {})
            if "error" in found:
                error = " ".join(str(found["error"]).split())
                lines.append(f"- {result.kernel.name} ({result.kernel.repo}), {target}: `{error}`")
    return lines


def page(results: list[Result]) -> str:
    """The page, from what was found."""
    counts = {target: sum("main" in result.by_target.get(target, {}) for result in results) for target in TARGETS}
    head = (LIST.with_suffix(".md")).read_text() if LIST.with_suffix(".md").exists() else ""
    said = ", ".join(f"{counts[target]} of {len(results)} for {target}" for target in TARGETS)
    columns = [
        "kernel",
        *(
            f"{target} {what}"
            for target in TARGETS
            for what in ("kernels", "VGPR / AGPR", "LDS B", "scratch B / spills")
        ),
    ]
    table = ["| " + " | ".join([*columns, "published"]) + " |", "|" + "---|" * (len(columns) + 1)]
    return "\n".join(
        [
            head.rstrip(),
            "",
            f"Compiled: {said}.",
            "",
            *table,
            *map(row, results),
            "",
            "## Why not",
            "",
            *reasons(results),
            "",
        ]
    )


def main() -> None:
    """Compile the list, print as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--only", default="", help="kernels whose path holds this")
    options = parser.parse_args()
    results = []
    for kernel in listed():
        if options.only in kernel.path:
            results.append(compiled(kernel, options.folder))
            print(f"{kernel.path}: {json.dumps(results[-1].by_target)}", flush=True)
    if options.page:
        options.page.write_text(page(results))


if __name__ == "__main__":
    main()
