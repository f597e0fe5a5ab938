"""Assembly is counted as a person counts it. The figures were taken from the fixtures by eye."""

from dataclasses import replace

import pytest

from problems.chips import chip
from sandbox.isa import IsaError, read_registers, stream
from sandbox.kernel_report import report
from sandbox.occupancy import occupancy
from sandbox.pipes import Cost, cost, lds_bytes, mfma, mfma_tile, pipe, vmem_bytes
from tests.sandbox.recorded import evidence

MI300X, MI355X = chip("MI300X"), chip("MI355X")


def test_vector_add_by_eye() -> None:
    found = report(evidence().kernels[0])
    assert (found.vgpr, found.agpr, found.sgpr, found.lds_bytes) == (5, 0, 22, 0)
    assert (found.instructions, found.waits, found.barriers, found.code_bytes) == (32, 2, 0, 416)
    assert found.memory == {"buffer_load_dwordx2": 2, "buffer_store_dwordx2": 1}
    assert (found.mfma, found.occupancy_waves, found.occupancy_limit) == ({}, 8, "waves")
    once = stream(evidence().kernels[0])
    assert once.loops == ()
    assert (once.straight.valu, once.straight.load_bytes, once.straight.store_bytes) == (9, 2 * 512, 512)


def test_matmul_by_eye() -> None:
    found = report(evidence().kernels[1])
    assert (found.vgpr, found.agpr, found.vgpr_spills, found.scratch_bytes) == (160, 0, 0, 0)
    assert found.mfma == {"v_mfma_f32_32x32x8_f16": 64}
    assert found.memory["buffer_load_dwordx4"] == 16
    # 160 registers allow 3 waves; the metadata's 32 KiB of LDS, which the assembly calls 0, allow 2 workgroups.
    assert (found.lds_bytes, found.occupancy_waves, found.occupancy_limit) == (32_768, 2, "lds")


def test_spills_and_agprs_are_seen() -> None:
    found = report(evidence().kernels[3])
    assert (found.vgpr, found.agpr, found.vgpr_spills, found.scratch_bytes) == (256, 256, 82, 68)
    assert (found.occupancy_waves, found.occupancy_limit) == (1, "vgpr")
    assert read_registers(evidence().kernels[3]).total == 512
    (loop,) = stream(evidence().kernels[3]).loops
    body = evidence().kernels[3].amdgcn.splitlines()[loop.line - 1 :]
    # Every reload in the loop is waited for by itself or with its neighbours.
    assert 0 <= loop.reloads <= sum("scratch_load" in line for line in body)


def test_loop_of_the_matmul() -> None:
    loops = stream(evidence().kernels[1]).loops
    assert [(loop.last - loop.first + 1, loop.parent) for loop in loops] == [(134, None)]
    body = loops[0].own
    assert (body.instructions, body.mfma, body.vmem, body.barriers) == (134, 32, 8, 2)
    assert body.mfma_flops == 32 * 2 * 32 * 32 * 8
    assert body.mfma_cycles == 32 * 32
    # 8 loads of 16 bytes for each of 64 lanes: a 128 x 64 and a 64 x 128 tile of fp16 are 32 KiB for 4 waves.
    assert body.load_bytes == 8 * 64 * 16 == 2 * 128 * 64 * 2 / 4


def test_a_tiles_mfmas_are_2mnk() -> None:
    for kernel, flops, waves in ((1, 2 * 128 * 128 * 64, 4), (4, 2 * 128 * 128 * 128, 4), (6, 2 * 128 * 128 * 64, 4)):
        (loop,) = stream(evidence().kernels[kernel]).loops
        assert loop.own.mfma_flops * waves == flops


def test_nested_loops() -> None:
    outer, inner = stream(evidence().kernels[7]).loops
    assert (outer.parent, inner.parent) == (None, 0)
    assert outer.first < inner.first < inner.last < outer.last
    assert (outer.own.mfma, inner.own.mfma) == (32, 32)


def test_gfx950_reads_straight_into_lds_with_wider_mfmas() -> None:
    found = report(evidence("gfx950").kernels[2])
    assert found.mfma == {"v_mfma_f32_32x32x64_f8f6f4": 16}
    # 67520 bytes fit twice into 160 KiB, and 196 registers allow 2 waves.
    assert (found.occupancy_waves, found.occupancy_limit) == (2, "vgpr")


@pytest.mark.parametrize(
    ("on", "vgprs", "lds", "waves", "workgroups", "resident", "limit"),
    [
        (MI300X, 64, 0, 4, 8, 8, "waves"),
        (MI300X, 65, 0, 4, 7, 7, "vgpr"),  # 72 after rounding: 512 // 72
        (MI300X, 128, 0, 4, 4, 4, "vgpr"),
        (MI300X, 129, 0, 4, 3, 3, "vgpr"),  # 136 after rounding
        (MI300X, 256, 0, 8, 1, 2, "vgpr"),
        (MI300X, 512, 0, 4, 1, 1, "vgpr"),
        (MI300X, 512, 0, 8, 0, 0, "vgpr"),  # 8 waves want 2 a SIMD, and 512 registers leave room for 1
        (MI300X, 32, 32_768, 4, 2, 2, "lds"),
        (MI300X, 32, 32_769, 4, 1, 1, "lds"),
        (MI300X, 32, 65_536, 8, 1, 2, "lds"),
        (MI300X, 32, 65_537, 8, 0, 0, "lds"),
        (MI355X, 32, 65_537, 8, 2, 4, "lds"),
        (MI355X, 32, 163_840, 4, 1, 1, "lds"),
        (MI300X, 16, 0, 1, 32, 8, "waves"),
        (MI300X, 16, 0, 2, 16, 8, "waves"),
        (MI300X, 16, 0, 16, 2, 8, "waves"),
        (MI300X, 200, 0, 1, 8, 2, "vgpr"),
    ],
)
def test_occupancy_by_hand(
    on: object, vgprs: int, lds: int, waves: int, workgroups: int, resident: int, limit: str
) -> None:
    held = occupancy(on, vgprs, lds, waves)  # type: ignore[arg-type]
    assert (held.workgroups_per_cu, held.waves_per_simd, held.limit) == (workgroups, resident, limit)


@pytest.mark.parametrize(
    ("name", "modifiers", "target", "flops", "cycles"),
    [
        ("v_mfma_f32_32x32x8_f16", "", "gfx942", 16_384, 32),
        ("v_mfma_f32_16x16x16_bf16", "", "gfx942", 8_192, 16),
        ("v_mfma_f32_32x32x16_fp8_fp8", "", "gfx942", 32_768, 32),
        ("v_mfma_f32_16x16x32_bf8_fp8", "", "gfx942", 16_384, 16),
        ("v_mfma_f32_32x32x2_f32", "", "gfx942", 4_096, 64),
        ("v_mfma_f32_16x16x8_xf32", "", "gfx942", 4_096, 16),
        ("v_mfma_f64_16x16x4_f64", "", "gfx942", 2_048, 32),
        ("v_mfma_i32_32x32x16_i8", "", "gfx942", 32_768, 32),
        ("v_mfma_f32_32x32x4_2b_f16", "", "gfx942", 16_384, 64),
        ("v_smfmac_f32_16x16x32_f16", "", "gfx942", 16_384, 16),
        ("v_mfma_f32_32x32x16_f16", "", "gfx950", 32_768, 32),
        ("v_mfma_f32_16x16x32_bf16", "", "gfx950", 16_384, 16),
        ("v_mfma_f32_32x32x8_f16", "", "gfx950", 16_384, 32),
        ("v_mfma_f32_32x32x64_f8f6f4", "", "gfx950", 131_072, 64),
        ("v_mfma_scale_f32_16x16x128_f8f6f4", "cbsz:4 blgp:4", "gfx950", 65_536, 16),
        ("v_mfma_i32_16x16x64_i8", "", "gfx950", 32_768, 16),
    ],
)
def test_mfma_cycles(name: str, modifiers: str, target: str, flops: int, cycles: int) -> None:
    assert mfma(name, modifiers, target) == (flops, cycles)


def test_no_mfma_is_faster_than_the_chip() -> None:
    """One per SIMD, all the time, is the data sheet's peak."""
    for name, dtype, on in (
        ("v_mfma_f32_32x32x8_f16", "fp16", MI300X),
        ("v_mfma_f32_32x32x16_fp8_fp8", "fp8", MI300X),
        ("v_mfma_f32_32x32x16_f16", "fp16", MI355X),
        ("v_mfma_f32_32x32x64_f8f6f4", "fp8", MI355X),
    ):
        flops, cycles = mfma(name, "", on.arch)
        peak = flops / cycles * on.simds_per_cu * on.compute_units * on.clock_hz
        assert peak == pytest.approx(on.flops_per_s(dtype))  # type: ignore[arg-type]


def test_widths_and_pipes() -> None:
    assert [vmem_bytes(f"buffer_load_{width}") for width in ("ubyte", "ushort", "dword", "dwordx4")] == [1, 2, 4, 16]
    assert [vmem_bytes(f"global_load_{width}") for width in ("sbyte_d16", "b64", "dwordx3")] == [1, 8, 12]
    assert [lds_bytes(f"ds_{name}") for name in ("read_b128", "read2st64_b64", "write_b16", "read_u16")] == [
        16,
        16,
        4,
        4,
    ]
    pipes = ["v_mfma_f32_32x32x8_f16", "v_add_u32_e32", "s_waitcnt", "s_barrier", "s_add_i32", "ds_read_b64"]
    assert [pipe(name) for name in pipes] == ["mfma", "valu", "wait", "barrier", "salu", "lds"]
    assert pipe("scratch_load_dword") == pipe("global_store_dword") == "vmem"
    # A byte a lane keeps the address unit as long as a dword a lane, for a quarter of the bytes.
    assert (
        cost("buffer_load_ubyte", "", "gfx942").vmem_cycles == cost("buffer_load_dword", "", "gfx942").vmem_cycles == 4
    )
    assert cost("buffer_load_dwordx4", "", "gfx942").vmem_cycles == 16
    assert cost("scratch_load_dwordx4", "", "gfx942").scratch_bytes == 1024
    assert (mfma_tile("v_mfma_f32_32x32x8_f16"), mfma_tile("v_add_f32")) == ((32, 32), (0, 0))
    assert cost("v_exp_f32_e32", "", "gfx942").valu_cycles == 4 * cost("v_add_f32_e32", "", "gfx942").valu_cycles
    doubled = Cost(valu=1, lds=2).times(2) + Cost(lds=1)
    assert (doubled.valu, doubled.lds) == (2, 5)


def test_text_that_is_not_assembly() -> None:
    kernel = evidence().kernels[0]
    with pytest.raises(IsaError, match="vgpr_count"):
        report(replace(kernel, amdgcn="hello"))
    with pytest.raises(IsaError, match="0 instructions"):
        stream(replace(kernel, amdgcn=".vgpr_count: 4"))
    with pytest.raises(IsaError, match="no reader"):
        report(replace(kernel, target="sm_90"))
    looping = "".join(f".LBB0_{i}:\n\ts_branch .LBB0_{i}\n" for i in range(300))
    with pytest.raises(IsaError, match="300 loops"):
        stream(replace(kernel, amdgcn=looping))
