"""The work of programs, read from real Triton IR, against what the kernels' source says by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.programs import Trace, Unresolved, trace
from sandbox.ttir import TtirError, parse, tile, tile_bytes
from tests.sandbox.recorded import evidence


def traced(launch: int, target: str = "gfx942", args: dict[str, int | float] | None = None) -> Trace:
    made = evidence(target).launches[launch]
    programs = np.arange(min(math.prod(made.grid), 4096), dtype=np.int64)
    return trace(evidence(target).kernels[made.kernel].ttir, made.args if args is None else args, made.grid, programs)


def test_vector_add_moves_three_tiles() -> None:
    found = traced(0)
    assert [(site.kind, site.tile_bytes) for site in found.accesses] == [
        ("load", 2048),
        ("load", 2048),
        ("store", 2048),
    ]
    assert found.accesses[2].corner is not None
    assert found.accesses[2].corner[:3].tolist() == [0, 1024, 2048]
    assert (found.dots, found.iterations) == ([], [])


@pytest.mark.parametrize(
    ("target", "launch", "trips", "total"),
    [
        ("gfx942", 1, 4096 // 64, 2 * 4096**3),
        ("gfx942", 3, 4096 // 32, 2 * 4096**3),
        ("gfx942", 4, 7168 // 128, 2 * 1024 * 1536 * 7168),
        ("gfx950", 2, 7168 // 128, 2 * 1024 * 1536 * 7168),
    ],
)
def test_dots_add_up_to_2mnk(target: str, launch: int, trips: int, total: int) -> None:
    found = traced(launch, target)
    (dot,) = found.dots
    assert dot.times.tolist() == [trips] * len(dot.times)
    assert dot.flops * dot.times.sum() == total


def test_the_last_trip_of_a_ragged_k_counts() -> None:
    args: dict[str, int | float] = {"M": 100, "N": 4096, "K": 65, "sam": 65, "sbk": 4096, "scm": 4096}
    assert traced(1, args=args).dots[0].times.max() == 2


def test_scales_read_at_one_address_count_once() -> None:
    a, b, row_scale, column_scale, out = traced(4).accesses
    assert (a.tile_bytes, a.distinct_bytes, b.distinct_bytes) == (16_384, 16_384, 16_384)
    assert (row_scale.tile_bytes, row_scale.distinct_bytes) == (512, 512)
    assert (column_scale.tile_bytes, column_scale.distinct_bytes) == (512, 4)
    assert (out.kind, out.tile_bytes, out.times.max()) == ("store", 32_768, 1)


def test_grouping_decides_which_tiles_neighbours_share() -> None:
    """Of the first 8 programs, with groups of 8 rows all read one column of b; without groups, one row of a."""
    for launch, rows, columns in ((1, 8, 1), (5, 1, 8)):
        a, b = traced(launch).accesses[:2]
        assert a.corner is not None and b.corner is not None
        assert (len(set(a.corner[:8].tolist())), len(set(b.corner[:8].tolist()))) == (rows, columns)


def test_persistent_programs_share_1024_tiles() -> None:
    found = traced(7)
    outer, inner = found.iterations
    # 1024 tiles over 304 programs: 112 programs take 4, the others 3. 64 steps of k each.
    assert sorted(set(outer.tolist())) == [3, 4]
    assert (outer.sum(), (outer == 4).sum()) == (1024, 112)
    assert inner.tolist() == (outer * 64).tolist()
    assert found.dots[0].flops * found.dots[0].times.sum() == 2 * 4096**3


def test_conditions_and_bounds_on_the_program_id() -> None:
    load, store = traced(8).accesses
    assert load.times[:6].tolist() == [1, 0, 3, 0, 5, 0]
    assert store.times.tolist() == [1] * 64


def test_loaded_bounds_are_not_guessed() -> None:
    with pytest.raises(Unresolved, match="depend on data"):
        traced(9)


def test_an_unknown_argument_is_not_guessed() -> None:
    with pytest.raises(Unresolved):
        traced(1, args={"M": 4096, "N": 4096})


NESTED = """
module {
  tt.func public @nested(%a: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %p = tt.splat %a : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.for %i = %c0 to %n step %c1  : i32 {
      %m = arith.addi %i, %c1 : i32
      scf.for %j = %c0 to %m step %c1  : i32 {
        %x = tt.load %q : tensor<64x!tt.ptr<f32>>
      }
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 1000])
def test_inner_bounds_that_follow_the_outer_loop(n: int) -> None:
    """A triangle: n (n + 1) / 2 inner trips, exact up to 8 outer ones and then by evenly spread samples."""
    found = trace(NESTED, {"n": n}, (1, 1, 1), np.zeros(1, dtype=np.int64))
    times = sum(site.times[0] for site in found.accesses)
    assert times == (n * (n + 1) / 2 if n <= 8 else pytest.approx(n * (n + 1) / 2, rel=0.06))


def test_types() -> None:
    assert tile("tensor<128x64xf16>") == ((128, 64), "f16")
    assert tile("tensor<128x1x!tt.ptr<f8E4M3FNUZ>>") == ((128, 1), "f8E4M3FNUZ")
    assert tile("!tt.ptr<bf16>") == ((), "bf16")
    kinds = ("tensor<64x!tt.ptr<i64>>", "tensor<2x3xbf16>", "!tt.ptr<f32>", "tensor<4xf8E5M2>")
    assert [tile_bytes(kind) for kind in kinds] == [512, 12, 4, 4]


@pytest.mark.parametrize(
    "text", ["", "module {", "tt.func", "}" * 50, "tt.func public @f(" + "{\n" * 40 + "x" * 40_000]
)
def test_text_that_is_not_triton_ir(text: str) -> None:
    with pytest.raises(TtirError):
        parse(text)


def test_depth_is_bounded() -> None:
    deep = "tt.func public @f() {\n" + "scf.if %c {\n" * 100
    with pytest.raises(TtirError, match="deeper"):
        parse(deep)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_text_is_read_or_refused(data: st.DataObject) -> None:
    whole = NESTED.splitlines()
    line = data.draw(st.integers(2, len(whole) - 1))
    whole[line] = data.draw(st.sampled_from([whole[line][::-1], "", "}", "{", whole[-5], "scf.for %", "tt.load"]))
    try:
        trace("\n".join(whole), {"n": 3}, (1, 1, 1), np.zeros(1, dtype=np.int64))
    except (TtirError, LookupError, ValueError, ArithmeticError, TypeError):
        return
