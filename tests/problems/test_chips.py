"""Chips: data-sheet figures that must agree with one another, and names."""

import pytest

from problems.chips import CHIPS, Chip, chip
from problems.spec import ProblemError


@pytest.mark.parametrize(
    ("name", "dtype", "tera"),
    [
        ("MI300X", "fp16", 1307.4),
        ("MI300X", "fp8", 2614.9),
        ("MI300X", "fp32", 163.4),
        ("MI300X", "fp64", 163.4),
        ("MI355X", "fp16", 2516.6),
        ("MI355X", "fp8", 5033.2),
        ("MI355X", "fp4", 10_066.3),
        ("MI355X", "fp64", 78.6),
        ("H100", "fp16", 989.4),
        ("H200", "fp8", 1978.9),
    ],
)
def test_peaks_are_the_data_sheets(name: str, dtype: str, tera: float) -> None:
    assert chip(name).flops_per_s(dtype) / 1e12 == pytest.approx(tera, rel=1e-3)  # type: ignore[arg-type]


def test_a_missing_dtype_is_computed_in_a_wider_one() -> None:
    assert chip("MI300X").flops_per_s("fp4") == chip("MI300X").flops_per_s("fp8")
    bare = chip("MI300X").model_copy(update={"peak_flops_per_s": {}})
    with pytest.raises(ProblemError, match="fp32"):
        bare.flops_per_s("fp32")


def test_roofline_by_hand() -> None:
    """The organisers' bound of amd-fp8-mm for 1024 x 1536 x 7168 is 8.63 us, by arithmetic; a copy is bound by HBM."""
    on = chip("MI300X")
    assert on.roofline_us({"fp8": 2 * 1024 * 1536 * 7168}, 1e6) == pytest.approx(8.63, abs=0.01)
    assert on.roofline_us({}, 5.3e6) == pytest.approx(1.0)


def test_names() -> None:
    assert chip("mi300").name == chip(" MI300X ").name == "MI300X"
    assert chip("H100").hbm_bytes_per_s < chip("H200").hbm_bytes_per_s
    with pytest.raises(ProblemError, match="MI300X"):
        chip("MI300Y")
    with pytest.raises(ProblemError, match="known chips"):
        chip("?")


@pytest.mark.parametrize("found", CHIPS.values(), ids=lambda found: found.name)
def test_every_chip_is_whole(found: Chip) -> None:
    assert found.sources
    assert found.launch_floor_us > 0
    assert found.compute_units % found.xcds == 0
    assert found.l2_bytes_per_s > found.hbm_bytes_per_s
    assert all(clock < found.clock_hz for clock in found.matrix_clock_hz.values())
    assert (found.mall_bytes > 0) == (found.vendor == "amd")
