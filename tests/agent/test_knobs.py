from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knobs import KnobError, apply, declared, load_seed, load_seeds
from agent.run import SEED_KERNELS
from problems.chips import chip

SOURCE = """#!POPCORN leaderboard x
import triton.language as tl

BLOCK = 64  # knob
WARPS: int = 4 # knob: of 64 lanes
CACHE = ".cg"  # knob
FAST = False  # knob
OTHER = 64  # no mark: not a knob
ALSO = 64


def f():
    BLOCK = 64  # knobs are only marked at module level
    INNER = 3  # knob
"""
TOML = """
[knobs.BLOCK]
values = [32, 64]
default = 64
why = "tile"
[knobs.WARPS]
values = [4, 8]
default = 4
why = "warps"
[knobs.CACHE]
values = ["", ".cg"]
default = ".cg"
why = "cache"
[knobs.FAST]
values = [true, false]
default = false
targets = ["cuda"]
why = "path"
[[constraints]]
expression = "BLOCK * WARPS <= 256 and BLOCK <= lds_bytes"
why = "fits"
"""


def seed(folder: Path, source: str = SOURCE, toml: str = TOML) -> Path:
    (folder / "submission.py").write_text(source)
    (folder / "knobs.toml").write_text(toml)
    return folder


def test_declared_finds_marked_lines_at_module_level() -> None:
    assert declared(SOURCE) == {"BLOCK": 64, "WARPS": 4, "CACHE": ".cg", "FAST": False}


def test_apply_edits_exactly_the_marked_lines() -> None:
    edited = apply(SOURCE, {"BLOCK": 32, "WARPS": 8, "CACHE": "", "FAST": True})
    changed = [pair for pair in zip(SOURCE.splitlines(), edited.splitlines(), strict=True) if pair[0] != pair[1]]
    assert changed == [
        ("BLOCK = 64  # knob", "BLOCK = 32  # knob"),
        ("WARPS: int = 4 # knob: of 64 lanes", "WARPS: int = 8 # knob: of 64 lanes"),
        ('CACHE = ".cg"  # knob', 'CACHE = ""  # knob'),
        ("FAST = False  # knob", "FAST = True  # knob"),
    ]
    assert declared(edited) == {"BLOCK": 32, "WARPS": 8, "CACHE": "", "FAST": True}


def test_apply_keeps_line_ends_and_a_value_as_it_is_spelt() -> None:
    source = "A = 0x10  # knob\r\nB = 1  # knob"
    assert apply(source, {"A": 16, "B": 2}) == "A = 0x10  # knob\r\nB = 2  # knob"


def test_apply_refuses_an_unknown_knob() -> None:
    with pytest.raises(KnobError, match="no knob NOPE in this source; it marks BLOCK"):
        apply(SOURCE, {"NOPE": 1})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("A = tl.constexpr(4)  # knob", "must be a plain literal"),
        ("A = 1.5  # knob", "whole number, a text or a truth value"),
        ("A = 1  # knob\nA = 2  # knob", "marked twice"),
    ],
)
def test_a_mark_that_cannot_be_read(line: str, says: str) -> None:
    with pytest.raises(KnobError, match=says):
        declared(line)


def test_a_seed_counts_and_checks_its_settings(tmp_path: Path) -> None:
    kernel = load_seed(seed(tmp_path), "a/b/c")
    assert kernel.settings == 16 and kernel.on("hip").settings == 8
    assert len({tuple(kernel.setting(index).items()) for index in range(16)}) == 16
    assert kernel.allows({**kernel.defaults, "WARPS": 4}, 65536)
    assert not kernel.allows({**kernel.defaults, "WARPS": 8}, 65536)
    assert not kernel.allows(kernel.defaults, 32)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("default = 64", "default = 48"), "default of BLOCK .48. is not among its values"),
        (("values = [4, 8]\ndefault = 4", "values = [4, 8]\ndefault = 8"), "WARPS is 4 in submission.py and 8"),
        (("values = [32, 64]", "values = [32, 64, 64]"), "BLOCK lists a value twice"),
        (("[knobs.FAST]", "[knobs.SLOW]"), "SLOW has no line"),
        (("BLOCK * WARPS", "BLOCK * WRAPS"), "WRAPS is no knob"),
        (("BLOCK * WARPS <= 256", "BLOCK <= "), "not an arithmetic expression"),
        (('why = "tile"', 'whi = "tile"'), "knobs.BLOCK"),
        (("[knobs.BLOCK]", "[knobs.BLOCK"), "is not TOML"),
    ],
)
def test_a_declaration_that_does_not_fit(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    assert change[0] in TOML
    with pytest.raises(KnobError, match=says):
        load_seed(seed(tmp_path, toml=TOML.replace(*change, 1)), "a/b/c")


def test_a_marked_knob_must_be_declared(tmp_path: Path) -> None:
    with pytest.raises(KnobError, match=r"marks NEW: add \[knobs.NEW\]"):
        load_seed(seed(tmp_path, source=SOURCE + "NEW = 1  # knob\n"), "a/b/c")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KnobError, match=r"cannot read .*submission.py"):
        load_seed(tmp_path, "a/b/c")


@pytest.mark.parametrize("problem", ["amd/fp8-mm", "pmpp/matmul", "pmpp/vectoradd"])
def test_our_own_seeds_load_and_their_defaults_fit_every_chip_they_are_for(problem: str) -> None:
    seeds = load_seeds(SEED_KERNELS, problem)
    assert seeds
    for kernel in seeds:
        assert apply(kernel.source, kernel.defaults) == kernel.source
        for name in ("MI300X", "MI355X", "H200"):
            assert kernel.allows(kernel.defaults, chip(name).lds_bytes), f"{kernel.name} on {name}"


def test_a_seed_is_offered_to_the_chips_it_is_written_for() -> None:
    names = [{seed.name for seed in load_seeds(SEED_KERNELS, "amd/fp8-mm", arch)} for arch in ("gfx942", "sm_90", None)]
    assert names[0] - names[1] == {"amd/fp8-mm/mfma_hip"} and names[1] and names[2] == names[0]


VALUES = st.one_of(st.integers(-(2**40), 2**40), st.booleans(), st.sampled_from(["", ".cg", "a b", "evict_last"]))


@given(st.lists(VALUES, min_size=1, max_size=6), st.lists(VALUES, min_size=6, max_size=6))
def test_what_is_applied_is_declared_and_can_be_taken_back(
    before: list[bool | int | str], after: list[bool | int | str]
) -> None:
    def text(value: bool | int | str) -> str:
        return f'"{value}"' if isinstance(value, str) else repr(value)

    source = "import x\n" + "".join(f"K{n} = {text(value)}  # knob\n" for n, value in enumerate(before)) + "# end"
    knobs = {f"K{n}": after[n] for n in range(len(before))}
    edited = apply(source, knobs)
    assert declared(edited) == knobs
    assert apply(edited, declared(source)) == source
