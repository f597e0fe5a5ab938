"""The estimate moves the way the hardware does, never below the roofline, and says when it cannot tell."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.chips import chip
from problems.spec import Case, Work
from sandbox.estimate import estimate
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import stream
from sandbox.launch import engine_clock_hz
from sandbox.programs import trace
from sandbox.queues import residence, waiting
from sandbox.traffic import sample, traffic
from sandbox.verdict import Estimated, Untimed
from sandbox.waves import program_work, wave_work
from tests.sandbox.recorded import evidence

MI300X, MI355X = chip("MI300X"), chip("MI355X")
CASE = Case(params={"m": 4096, "n": 4096, "k": 4096})
VECTOR = Work(flops={"fp16": 16384.0**2}, bytes=3 * 2 * 16384.0**2)
MATMUL = Work(flops={"fp16": 2 * 4096.0**3}, bytes=3 * 2 * 4096.0**2)
FP8 = Work(flops={"fp8": 2.0 * 1024 * 1536 * 7168}, bytes=1024.0 * 7168 + 1536 * 7168 + 2 * 1024 * 1536)
NOTHING = Work(flops={}, bytes=0)


def launched(index: int, target: str = "gfx942", **changes: object) -> RecordedLaunch:
    return replace(evidence(target).launches[index], **changes)  # type: ignore[arg-type]


def changed(index: int, **changes: object) -> list[RecordedKernel]:
    kernels = list(evidence().kernels)
    kernels[index] = replace(kernels[index], **changes)  # type: ignore[arg-type]
    return kernels


def estimated(launch: RecordedLaunch, work: Work = MATMUL, kernels: object = None) -> Estimated:
    found = estimate(MI300X, CASE, work, [launch], kernels or evidence().kernels)  # type: ignore[arg-type]
    assert isinstance(found, Estimated), found
    return found


def grid_of(m: int, n: int, k: int, tile: int = 128) -> dict[str, object]:
    """Changes that make the matmul launch another size."""
    grid = (-(-m // tile) * -(-n // tile), 1, 1)
    return {"grid": grid, "args": {"M": m, "N": n, "K": k, "sam": k, "sbk": n, "scm": n}}


def test_vector_add_is_bound_by_hbm() -> None:
    found = estimated(launched(0), VECTOR)
    # 1.61 GB at 81 % of 5.3 TB/s.
    assert found.bound == "hbm"
    assert found.parts_us["hbm"] == pytest.approx(3 * 2 * 16384**2 / (0.81 * 5.3e12) * 1e6, rel=1e-3)
    assert found.parts_us["hbm"] < found.us < 1.05 * found.parts_us["hbm"]


def test_parts_and_chip_are_named() -> None:
    found = estimated(launched(1))
    assert found.chip == "MI300X"
    assert set(found.parts_us) == {
        "launch", "mfma", "valu", "lds", "vmem", "latency", "l2", "mall", "hbm", "roofline"
    }  # fmt: skip
    assert found.us >= found.parts_us["mfma"] > found.parts_us["roofline"]


def test_mfma_time_by_hand() -> None:
    """1024 tiles: at most 4 on a unit, one wave a SIMD each, 64 steps of 32 MFMAs of 32 cycles.

    On the MI355X it is 16 MFMAs of 32 cycles, at 2400 MHz; the MI300X's clock is between 1115 MHz and 2100.
    """
    cycles = 4 * 64 * 32 * 32
    assert cycles / 2.1e3 < estimated(launched(1)).parts_us["mfma"] < cycles / 1.115e3
    found = estimate(MI355X, CASE, MATMUL, [launched(1, "gfx950")], evidence("gfx950").kernels)
    assert isinstance(found, Estimated)
    assert found.parts_us["mfma"] == pytest.approx(cycles / 2 / 2.4e3, abs=1e-3)


def test_the_clock_falls_as_the_matrix_units_are_used() -> None:
    assert engine_clock_hz(MI300X, "fp16", 0.94) == pytest.approx(1.115e9)
    assert engine_clock_hz(MI300X, "fp16", 0.94 / 8) == MI300X.clock_hz
    assert engine_clock_hz(MI300X, "fp16", 0.5) == pytest.approx(1.115e9 * 1.88 ** (1 / 3))
    assert engine_clock_hz(MI300X, "fp16", 0.0) == engine_clock_hz(MI300X, None, 0.9) == MI300X.clock_hz
    assert engine_clock_hz(MI355X, "fp16", 0.9) == MI355X.clock_hz


@pytest.mark.parametrize(("kernel", "runs"), [(1, [63]), (6, [64]), (4, [55]), (7, [1024 / 304, 63 * 1024 / 304])])
def test_loop_counts_follow_from_conservation(kernel: int, runs: list[float]) -> None:
    """A pipelined loop of 64 trips runs 63 times and once more behind it; unpipelined it runs 64 times."""
    recorded, launch = evidence().kernels[kernel], evidence().launches[kernel]
    found = trace(recorded.ttir, launch.args, launch.grid, sample(launch.grid[0]))
    wave = wave_work(stream(recorded), program_work(found, recorded, (32, 32)), recorded)
    assert [loop.runs for loop in wave.loops] == pytest.approx(runs)


def test_never_below_the_roofline() -> None:
    slow = Work(flops={"fp64": 1.2e11}, bytes=1e8)
    assert estimated(launched(1), slow).us == pytest.approx(MI300X.roofline_us(slow.flops, slow.bytes), abs=1e-3)
    for index, work in ((0, VECTOR), (1, MATMUL), (2, MATMUL), (3, MATMUL), (4, FP8), (6, MATMUL), (7, MATMUL)):
        assert estimated(launched(index), work).us > MI300X.roofline_us(work.flops, work.bytes)


def test_bad_settings_are_clearly_worse() -> None:
    good = estimated(launched(1)).us
    assert estimated(launched(2)).us > 1.5 * good  # 16 x 16 tiles, one wave
    assert estimated(launched(3)).us > 1.5 * good  # spills
    assert estimated(launched(6)).us > 1.1 * good  # no pipelining
    assert estimated(launched(7)).us > 1.1 * good  # one persistent program a unit, and 4 tiles where the mean is 3.4


def test_a_second_workgroup_hides_latency() -> None:
    """The same code with twice the LDS holds one workgroup a unit instead of two."""
    assert estimated(launched(1), kernels=changed(1, shared_bytes=65_536)).us > 1.1 * estimated(launched(1)).us


def test_few_workgroups_leave_units_idle() -> None:
    """304 tiles on 304 units take little longer than 32, and only because power then holds the clock down."""
    few, many = (estimated(launched(1, **grid_of(128 * rows, 128 * 8, 4096)), NOTHING) for rows in (4, 38))
    assert 0.7 * many.us < few.us <= many.us


def test_a_tail_costs_a_round() -> None:
    """608 workgroups fill the chip twice over; eight more need a round of their own, one for each die."""
    full, over = (estimated(launched(1, **grid_of(128 * rows, 1024, 4096)), NOTHING).us for rows in (76, 77))
    assert over > 1.3 * full


def test_time_grows_with_every_dimension() -> None:
    sizes = [(1024, 1024, 512), (2048, 1024, 512), (4096, 4096, 512), (4096, 4096, 4096), (8192, 4096, 4096)]
    times = [estimated(launched(1, **grid_of(*size)), NOTHING).us for size in sizes]
    assert times == sorted(times)
    assert times[0] < times[2] < times[4]


def test_launch_order_decides_what_an_l2_shares() -> None:
    """16384 x 16384 tiles of 128, 76 programs resident on each die, every eighth of 608 in a row.

    Row by row, they span 16 columns (every eighth of 128) and 5 rows: 21 different tiles where 152 are asked for. In
    groups of 8 rows each die gets one row and 76 columns: 77 tiles. Grouping for one L2 hurts where there are eight.
    """
    kernels = evidence().kernels
    shares = []
    for index in (5, 1):
        launch = launched(index, **grid_of(16384, 16384, 4096))
        whole = trace(kernels[index].ttir, launch.args, launch.grid, sample(launch.grid[0]))
        moved = traffic(MI300X, kernels[index], launch, whole, 2)
        asked, written = 128 * 128 * 64 * 2 * 16_384, 2 * 16384**2
        assert moved.l2_bytes == asked + written
        assert moved.hbm_bytes <= moved.fabric_bytes < moved.l2_bytes
        shares.append((moved.fabric_bytes - written) / asked)
    assert shares == pytest.approx([21 / 152, 77 / 152], rel=0.05)


def test_what_fits_no_cache_is_read_again_from_hbm() -> None:
    kernel = evidence().kernels[1]
    small, large = (launched(1, **grid_of(size, size, size)) for size in (4096, 16384))
    shares = []
    for launch in (small, large):
        whole = trace(kernel.ttir, launch.args, launch.grid, sample(launch.grid[0]))
        moved = traffic(MI300X, kernel, launch, whole, 2)
        size = launch.args["M"]
        shares.append(moved.hbm_bytes / (3 * 2 * size * size))
    assert shares[0] == pytest.approx(1)
    assert shares[1] > 1.5


def test_launches_add_up() -> None:
    one = estimated(launched(1)).us
    both = estimate(MI300X, CASE, MATMUL, [launched(1), launched(1)], evidence().kernels)
    assert isinstance(both, Estimated)
    assert both.us == pytest.approx(2 * one, abs=0.01)


def test_an_autotuned_launch_takes_its_best_configuration() -> None:
    tried = [launched(index, tuning=True) for index in (1, 2, 3)]
    found = estimate(MI300X, CASE, MATMUL, [*tried, launched(2)], evidence().kernels)
    assert isinstance(found, Estimated)
    assert found.us == estimated(launched(1)).us


def test_the_next_chip_is_faster() -> None:
    found = estimate(MI355X, CASE, MATMUL, [launched(1, "gfx950")], evidence("gfx950").kernels)
    assert isinstance(found, Estimated)
    assert found.us < estimated(launched(1)).us


def test_unreadable_triton_falls_back_on_the_case() -> None:
    """The work of the case over the grid: near what the same kernel gives where its Triton code is read."""
    blind = estimated(launched(1), kernels=changed(1, ttir="not Triton IR"))
    assert blind.parts_us["mfma"] == pytest.approx(estimated(launched(1)).parts_us["mfma"], rel=0.02)


def no_time(*launches: RecordedLaunch, kernels: object = None, work: Work = MATMUL, on: str = "MI300X") -> str:
    found = estimate(chip(on), CASE, work, launches, kernels or evidence().kernels)  # type: ignore[arg-type]
    assert isinstance(found, Untimed), found
    return found.reason


def test_reasons_for_no_time() -> None:
    assert "no kernel launch" in no_time()
    assert "no kernel launch" in no_time(launched(1, tuning=True))
    assert "done elsewhere" in no_time(launched(8), work=VECTOR)
    assert "compute at most" in no_time(launched(0), work=MATMUL)
    assert "measured" in no_time(launched(1), on="H100")
    assert "not compiled for MI355X" in no_time(launched(1), on="MI355X")
    assert "did not compile" in no_time(launched(1), kernels=changed(1, error="OutOfResources"))
    assert "does not fit" in no_time(launched(1), kernels=changed(1, shared_bytes=70_000))
    assert "vgpr_count" in no_time(launched(1), kernels=changed(1, amdgcn="s_endpgm"))
    huge = evidence().kernels[1].ttir.replace("128x64xf16", "9" * 6000 + "xf16")
    assert "could not be read" in no_time(launched(1), kernels=changed(1, ttir=huge))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.sampled_from([0, 1, 4, 7, 8]), st.sampled_from(["ttir", "amdgcn"]), st.data())
def test_damaged_evidence_gives_a_time_or_a_reason(index: int, field: str, data: st.DataObject) -> None:
    lines = getattr(evidence().kernels[index], field).splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    noise = data.draw(
        st.sampled_from(["", "}", "{", "%x = scf.for %y = %z to %w step %v {", "9" * 5000, "tt.dot", "é"])
    )
    text = "\n".join([*lines[:at], noise, *lines[at + data.draw(st.integers(0, 3)) :]])
    found = estimate(MI300X, CASE, NOTHING, [launched(index)], changed(index, **{field: text}))
    assert isinstance(found, Estimated | Untimed)
    assert isinstance(found, Untimed) or 0 < found.us < float("inf")


def test_waves_share_pipes() -> None:
    """Alone, the sum; many, the slowest pipe; never better than either bound, never worse than one after another."""
    demands, delay = {"mfma": 3.0, "valu": 1.0}, 6.0
    assert residence(demands, delay, 1) == 10
    assert residence({"mfma": 3.0}, 0.0, 5) == pytest.approx(15)
    assert residence({}, 0.0, 4) == 0
    last = 10.0
    for waves in range(2, 40):
        time = residence(demands, delay, waves)
        assert max(10, 3 * waves) <= time < 10 * waves
        assert time / waves < last + 1e-9
        last = time / waves
    assert last == pytest.approx(3, rel=0.05)


def test_waves_share_memory() -> None:
    """Nothing where memory is idle; where it is the bound, what brings the round to its bytes over the bandwidth."""
    assert waiting(128, 0.0, 5.0, 1000) == 0
    assert waiting(128, 1e-6, 100.0, 1000) < 0.01
    for delay in (1.0, 2.0, 5.0):
        few, many = (delay + waiting(128, 10 / count, delay, count) for count in (1000, 10_000))
        assert 10 <= many < few < 11
    waits = [waiting(128, 0.01, 10.0, customers) for customers in (1, 100, 1000, 2000)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(0, abs=1e-9)


def test_more_in_flight_comes_nearer_to_the_bandwidth() -> None:
    """The same copy with a quarter of the workgroups resident: LDS that it does not use keeps the others out."""
    crowded, alone = (estimated(launched(0), VECTOR, changed(0, shared_bytes=size)).us for size in (0, 32_768))
    assert alone > crowded
