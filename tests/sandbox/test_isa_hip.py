"""Clang's assembly is read as Triton's is: several kernels in a file, LDS of two kinds, and advice that fits."""

import gzip
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.chips import chip
from problems.spec import Case, Work
from sandbox.banks import conflict, sectors
from sandbox.checker.kernels import UNREADABLE
from sandbox.estimate import estimate
from sandbox.evidence import EvidenceError, RecordedKernel, RecordedLaunch, parse
from sandbox.instructions import loop_spans, read_instructions
from sandbox.isa import IsaError, stream
from sandbox.kernel_report import report
from sandbox.lanes import addresses
from sandbox.listing import base_name, listing, symbols
from sandbox.shares import shares
from sandbox.verdict import Estimated, IsaReport, Timing, Untimed
from tests.sandbox.recorded import DATA, evidence

MI300X = chip("MI300X")


@cache
def assembly(target: str = "gfx942") -> str:
    return gzip.decompress((DATA / f"hip_{target}.s.gz").read_bytes()).decode()


def kernel(name: str, threads: int = 64, dynamic_lds: int = 0, target: str = "gfx942") -> RecordedKernel:
    waves = -(-threads // 64)
    changes = {"name": name, "target": target, "ttir": "", "amdgcn": assembly(target), "num_warps": waves}
    changes |= {"num_stages": 0, "shared_bytes": dynamic_lds, "block": (threads, 1, 1), "signature": {}}
    return replace(evidence().kernels[0], **changes)  # type: ignore[arg-type]


def rules(found: IsaReport) -> set[str]:
    return {advice.rule for advice in found.advice}


def test_each_kernel_of_a_file_by_itself() -> None:
    assert [base_name(symbol) for symbol in symbols(assembly())] == [
        "copy", "vector_gemm", "matrix_gemm", "matrix_gemm", "widened", "half_waves", "indexed"
    ]  # fmt: skip
    found = report(kernel("copy", 256))
    assert (found.vgpr, found.sgpr, found.instructions, found.code_bytes) == (6, 14, 11, 72)
    assert found.memory == {"global_load_dwordx4": 1, "global_store_dwordx4": 1}
    assert (found.loops, found.advice) == ((), ())
    with pytest.raises(IsaError, match="several kernels called matrix_gemm"):
        report(kernel("matrix_gemm"))
    with pytest.raises(IsaError, match="no kernel called other"):
        report(kernel("other"))


def test_cxx_names() -> None:
    names = {"_Z4copyPf": "copy", "_ZN2ns3fooIiEEvT_": "foo", "_ZL3barv": "bar", "matmul": "matmul"}
    assert {symbol: base_name(symbol) for symbol in names} == names


def test_static_and_dynamic_lds_add_up() -> None:
    assert report(kernel("vector_gemm", 256)).lds_bytes == 2 * 16 * 16 * 4
    found = report(kernel("vector_gemm", 256, dynamic_lds=62_000))
    assert (found.lds_bytes, found.occupancy_waves, found.occupancy_limit) == (64_048, 1, "lds")
    assert "lds-size" not in rules(found)
    assert "lds-size" in rules(report(kernel("vector_gemm", 256, dynamic_lds=64_000)))
    assert report(kernel("vector_gemm", 256, 64_000, "gfx950")).occupancy_waves == 2
    assert "not on gfx942" in report(kernel("vector_gemm", 256, 64_000, "gfx950")).advice[0].message


def test_a_loops_cost_names_its_pipe() -> None:
    """Two 16-cycle MFMAs; two 16-byte loads a lane are 16 cycles each on a path that four SIMDs share.

    Two 16-byte writes are 8 passes of LDS each; four 8-byte reads 4 each, twice that in conflict; on gfx950 2, without.
    """
    for target, binding, lds in (("gfx942", "lds", 192), ("gfx950", "vmem", 96)):
        (loop,) = report(kernel(symbols(assembly())[3], 64, 2560, target)).loops
        assert (loop.label, loop.depth, loop.binding) == (".LBB3_5", 1, binding)
        assert loop.cycles["lds"] == lds
        assert (loop.cycles["mfma"], loop.cycles["vmem"]) == (32, 4 * 2 * 16)
        assert assembly(target).splitlines()[loop.line - 1].strip().startswith("v_lshl_add_u64")
    assert report(evidence().kernels[1]).loops[0].binding == "mfma"


def test_padding_takes_bank_conflicts_away() -> None:
    """Rows of 64 bytes start in 2 of 32 banks, so that 16 lanes that read 8 bytes each take 8 passes; 80 bytes, 2."""
    close, padded = (report(kernel(symbols(assembly())[i], 64, 2560)) for i in (2, 3))
    assert close.bank_conflict > 3 * padded.bank_conflict
    (told,) = (advice for advice in close.advice if advice.rule == "bank-conflict")
    assert told.instruction.startswith("ds_read2_b64") and "8.0 times" in told.message
    assert assembly().splitlines()[told.line - 1].split() == told.instruction.split()
    assert "bank-conflict" not in rules(padded)


@pytest.mark.parametrize(
    ("name", "threads", "expected"),
    [
        ("vector_gemm", 256, {"no-mfma"}),
        ("widened", 64, {"fp8-upcast", "narrow-access", "scattered-access"}),
        ("half_waves", 96, {"half-wave", "partial-wave", "narrow-access", "scattered-access"}),
        ("indexed", 64, {"scratch"}),
    ],
)
def test_advice_fits_the_fault(name: str, threads: int, expected: set[str]) -> None:
    assert rules(report(kernel(name, threads))) == expected


def test_fp8_of_the_other_flavour_depends_on_the_target() -> None:
    assert "fp8-upcast" not in rules(report(kernel("widened", target="gfx950")))
    foreign = replace(evidence().kernels[1], signature={"a": "*fp8e4nv"})
    assert "e4m3fnuz" in next(a.remedy for a in report(foreign).advice if a.rule == "fp8-upcast")


def test_advice_on_tritons_kernels() -> None:
    kernels = evidence().kernels
    assert {"spill", "drained-loads"} <= rules(report(kernels[3]))
    assert "drained-loads" in rules(report(kernels[6])) and "drained-loads" not in rules(report(kernels[1]))
    # 196 registers let 2 waves share a SIMD, 168 would let 3: too far to be worth a word. 174 are not.
    near = replace(kernels[1], amdgcn=kernels[1].amdgcn.replace(".vgpr_count:     160", ".vgpr_count:     174"))
    assert "168 would let 3" in next(a.message for a in report(replace(near, shared_bytes=0)).advice)


def test_a_shared_ending_is_no_loop() -> None:
    text = "\ts_branch .LBB0_2\n.LBB0_1:\n\ts_nop 0\n\ts_endpgm\n.LBB0_2:\n\ts_nop 1\n\ts_branch .LBB0_1\n"
    assert loop_spans(*read_instructions(text)) == ()
    assert len(loop_spans(*read_instructions(text.replace("\ts_endpgm\n", "")))) == 1


def test_lanes_and_banks_by_hand() -> None:
    text = "\tv_lshlrev_b32_e32 v1, 7, v0\n\ts_movk_i32 s4, 0x84\n\tv_mul_lo_u32 v2, v0, s4\n\tds_read_b32 v3, v1\n"
    text += "\tds_read_b32 v4, v2 offset:8\n\tds_read_b32 v5, v4\n\tglobal_load_dword v6, v1, s[0:1]\n"
    found = addresses(read_instructions(text)[0], (64, 1, 1))
    lanes = np.arange(64)
    # The third read's address was loaded: it is not known.
    assert sorted(found) == [3, 4, 6]
    assert (found[3][0] == 128 * lanes).all() and (found[4][0] == 132 * lanes + 8).all()
    assert (conflict(found[3], "ds_read_b32"), conflict(found[4], "ds_read_b32"), sectors(found[6][0], 4)) == (
        32,
        1,
        64,
    )
    assert conflict([4 * lanes], "ds_read_b32") == conflict([0 * lanes], "ds_read_b32") == 1
    assert (sectors(4 * lanes, 4), sectors(16 * lanes, 16)) == (4, 16)


@pytest.mark.parametrize(
    ("mnemonic", "stride", "target", "passes"),
    [
        ("ds_write_b128", 16, "gfx942", 1),
        ("ds_read_b128", 16, "gfx942", 1),
        ("ds_read_b128", 16, "gfx950", 1),
        # Rows of 80 bytes: eight lanes start in banks 0, 20, 8, 28, 16, 4, 24, 12.
        ("ds_write_b128", 80, "gfx942", 1),
        ("ds_read_b128", 80, "gfx942", 1),
        ("ds_read_b64", 64, "gfx942", 8),  # 16 lanes in 2 of 32 banks
        ("ds_read_b64", 64, "gfx950", 8),  # 32 lanes in 4 of 64 banks
        ("ds_write_b64", 64, "gfx950", 8),
        ("ds_read_b64", 256, "gfx950", 32),
    ],
)
def test_which_lanes_meet(mnemonic: str, stride: int, target: str, passes: float) -> None:
    assert conflict([stride * np.arange(64)], mnemonic, target) == passes


def test_threads_of_a_square_block() -> None:
    text = "\tv_and_b32_e32 v1, 0x3ff, v0\n\tv_bfe_u32 v2, v0, 10, 10\n\tv_lshl_add_u32 v3, v2, 4, v1\n"
    text += "\tds_read_b32 v4, v3\n"
    found = addresses(read_instructions(text)[0], (16, 16, 1))
    assert (found[3][0] == np.arange(64)).all()


def timed(work: Work, grid: int, **changes: object) -> Timing:
    launch = RecordedLaunch(kernel=0, grid=(grid, grid, 1), args={}, call=0, tuning=False)
    made = replace(kernel(symbols(assembly())[3], 64, 2560), **changes)  # type: ignore[arg-type]
    return estimate(MI300X, Case(params={}), work, [launch], [made])


def test_a_hip_kernel_is_estimated_from_its_assembly() -> None:
    """512 x 512 tiles of 16 x 16, 128 steps of 64 in depth: bound by LDS, or by the bytes it asks of the caches."""
    side, depth = 8192, 8192
    work = Work(flops={"fp8": 2.0 * side * side * depth}, bytes=2.0 * side * depth + 4 * side * side)
    found = timed(work, 512)
    assert isinstance(found, Estimated)
    waves = 512 * 512 / MI300X.compute_units
    assert found.parts_us["lds"] == pytest.approx(waves * 128 * 48 / MI300X.clock_hz * 1e6, rel=0.1)
    assert found.parts_us["l2"] == pytest.approx(512**2 * 32 * depth / (0.81 * MI300X.l2_bytes_per_s) * 1e6, rel=0.1)
    conflicting = timed(work, 512, name=symbols(assembly())[2])
    assert isinstance(conflicting, Estimated) and conflicting.us > 1.5 * found.us


def test_calls_are_not_followed() -> None:
    called = assembly().replace("\tv_mfma_f32_16x16x32", "\ts_swappc_b64 s[30:31], s[0:1]\n\tv_mfma_f32_16x16x32")
    work = Work(flops={"fp8": 1e9}, bytes=1e6)
    found = timed(work, 64, amdgcn=called)
    assert isinstance(found, Untimed) and "not inlined" in found.reason
    assert "call" in rules(report(replace(kernel(symbols(called)[3]), amdgcn=called)))


def test_a_symbol_without_code() -> None:
    hollow = assembly().replace("_Z4copyPDv4_fPKS_:", "_Z4gone:")
    with pytest.raises(IsaError, match="no code"):
        listing(hollow, "copy")
    assert stream(kernel("copy")).loops == ()


def test_reloads_and_cover_are_read_from_the_waits() -> None:
    """Two loads of spilled registers with a wait each; the last tile's load is covered by one 32-cycle MFMA."""
    text = ".LBB0_1:\n\tscratch_load_dword v1, off, off\n\ts_waitcnt vmcnt(0)\n"
    text += "\tscratch_load_dword v2, off, off offset:4\n"
    text += "\ts_waitcnt vmcnt(0)\n\tglobal_load_dwordx4 v[4:7], v8, s[0:1]\n"
    text += "\tv_mfma_f32_32x32x8_f16 v[16:31], v[10:11], v[12:13], v[16:31]\n\ts_waitcnt vmcnt(0)\n"
    text += "\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n"
    (loop,) = stream(replace(kernel("copy"), amdgcn=text)).loops
    assert (loop.reloads, loop.covered_cycles, loop.own.scratch_bytes) == (2, 32, 512)
    later = text.replace("v[16:31]\n\ts_waitcnt vmcnt(0)\n", "v[16:31]\n")
    (loop,) = stream(replace(kernel("copy"), amdgcn=later)).loops
    # Now the first wait of the next pass is the one that needs it.
    assert loop.covered_cycles == 32 + 4 + 4


def test_blocks_are_read_strictly() -> None:
    payload = json.loads(gzip.decompress((DATA / "evidence_gfx942.json.gz").read_bytes()))
    payload["kernels"], payload["launches"] = payload["kernels"][:1], []
    assert parse(json.dumps(payload).encode()).kernels[0].block == (256, 1, 1)
    payload["kernels"][0]["metadata"]["block"] = [32, 8, 1]
    assert parse(json.dumps(payload).encode()).kernels[0].block == (32, 8, 1)
    for odd in ([32, 8], [0, 8, 1], "32", [32, 8.5, 1]):
        payload["kernels"][0]["metadata"]["block"] = odd
        with pytest.raises(EvidenceError, match="block"):
            parse(json.dumps(payload).encode())


NOISE = (
    "",
    ".LBB2_5:",
    "\ts_branch .LBB2_5",
    "\tds_read_b64 v[0:1], v0 offset:99999999999999999999",
    "\tv_mul_lo_u32 v0",
    "\tv_lshlrev_b32_e32 v0, 31, v0",
    "9" * 400,
    ".amdgpu_metadata",
    "\tds_read2_b x, v0",
    "\tv_mov_b32 v9, v0",
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.integers(1, 6), st.data())
def test_damaged_assembly_gives_a_report_or_a_reason(index: int, data: st.DataObject) -> None:
    lines = assembly().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(0, 3))
    text = "\n".join([*lines[:at], data.draw(st.sampled_from(NOISE)), *lines[at + cut :]])
    damaged = replace(kernel(symbols(assembly())[index], 64, 2560), amdgcn=text)
    try:
        assert report(damaged).instructions > 0
    except (IsaError, *UNREADABLE):
        pass


def test_a_cases_work_goes_to_the_kernels_that_multiply() -> None:
    """Of a matrix kernel, a vector one and a copy, the first does it all; two matrix launches share by their waves."""
    matrix, vector = kernel(symbols(assembly())[3], 64, 2560), kernel("vector_gemm", 256)
    copying, work = kernel("copy", 256), Work(flops={"fp8": 1e12}, bytes=1e9)
    launch = RecordedLaunch(kernel=0, grid=(64, 64, 1), args={}, call=0, tuning=False)
    given = shares(work, [(matrix, launch), (vector, launch), (copying, launch)])
    assert [part.flops for part in given] == [{"fp8": 1e12}, {}, {}]
    assert [part.flops for part in shares(work, [(vector, launch), (copying, launch)])] == [{"fp8": 1e12}, {}]
    quarter = replace(launch, grid=(64, 16, 1))
    assert [part.flops["fp8"] for part in shares(work, [(matrix, launch), (matrix, quarter)])] == [8e11, 2e11]
    assert shares(work, [(evidence().kernels[1], launch), (copying, launch)]) == [work, work]
