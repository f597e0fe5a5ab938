"""The rules an output is held against, and the buffers it comes back in."""

import math

import pytest
import torch

from problems.spec import BoardCheck, Tolerance
from sandbox.checker import rule
from sandbox.checker.layout import ALIGNMENT, changed, fill, lay_out
from sandbox.checker.memory import HostMemory
from sandbox.checker.rule import board_accepts, compare
from sandbox.verdict import ErrorFigures

TOLERANCE = Tolerance(rtol=1e-3, term_rtol=1e-6, reason="for these tests")


def figures(
    out: list[float], exact: list[float], terms: list[float], dtype: torch.dtype = torch.float32
) -> ErrorFigures:
    doubles = torch.tensor(exact, dtype=torch.float64), torch.tensor(terms, dtype=torch.float64)
    return compare(torch.tensor(out, dtype=dtype), *doubles, TOLERANCE)


def test_the_allowance_is_relative_to_result_and_terms() -> None:
    assert figures([1.0009], [1.0], [1.0]).mismatches == 0
    assert figures([1.0012], [1.0], [1.0]).mismatches == 1
    assert figures([1e-7], [0.0], [1.0]).mismatches == 0, "a cancelled sum is judged by its terms"
    assert figures([1e-5], [0.0], [1.0]).mismatches == 1


def test_zeros_never_pass() -> None:
    got = figures([0.0, 0.0], [1e-6, -3.0], [1e-6, 3.0])
    assert got.mismatches == 2 and got.max_rel == 1.0


def test_the_figures() -> None:
    got = figures([1.0, 2.5, -4.0], [1.0, 2.0, -4.0], [0.0, 0.0, 0.0])
    assert (got.max_abs, got.max_rel, got.mismatches, got.elements) == (0.5, 0.25, 1, 3)
    assert got.worst_ratio == pytest.approx(250.0)


def test_no_error_needs_no_allowance() -> None:
    assert figures([0.0], [0.0], [0.0]) == ErrorFigures(max_abs=0, max_rel=0, worst_ratio=0, mismatches=0, elements=1)
    assert figures([1e-30], [0.0], [0.0]).worst_ratio == math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_output_that_is_not_finite_fails_where_the_result_is(bad: float) -> None:
    got = figures([1.0, bad], [1.0, 1.0], [1.0, 1.0])
    assert got.mismatches == 1 and got.worst_ratio == math.inf


def test_overflow_of_the_dtype_must_be_said() -> None:
    assert figures([math.inf, -math.inf], [70_000.0, -70_000.0], [1.0, 1.0], torch.float16).mismatches == 0
    assert figures([65_504.0, math.inf], [70_000.0, -70_000.0], [1.0, 1.0], torch.float16).mismatches == 2
    assert figures([math.nan, 0.0], [math.nan, math.nan], [1.0, 1.0]).mismatches == 1


@pytest.mark.parametrize("place", [0, 6, 7, 8, 19])
def test_every_chunk_is_looked_at(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "CHUNK", 7)
    exact = torch.ones(4, 5, dtype=torch.float64)
    out = exact.to(torch.bfloat16)
    check = BoardCheck(rtol=1e-2, atol=0, difference="fp32", source="here")
    assert compare(out, exact, exact, TOLERANCE).mismatches == 0 and board_accepts(out, out.clone(), check)
    out.view(-1)[place] = 2
    assert compare(out, exact, exact, TOLERANCE).mismatches == 1
    assert not board_accepts(out, exact.to(torch.bfloat16), check)


def test_plain_numbers_take_half_the_passes_to_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, errors over no allowance, and values next to what the dtype holds."""
    exact = torch.tensor([0.0, 0.0, 1.0, -2.0, 65519.0, 65504.0, 1e-9], dtype=torch.float64)
    out = torch.tensor([0.0, 1e-3, 1.0, -2.25, 65504.0, 65504.0, 0.0]).half()
    for last in range(2, len(out) + 1):
        parts = out[:last], exact[:last], torch.zeros(last, dtype=torch.float64)
        found = compare(*parts, TOLERANCE)
        with monkeypatch.context() as patch:
            patch.setattr(rule, "_plain", lambda *_: False)
            assert compare(*parts, TOLERANCE) == found


def test_whole_numbers_are_compared_too() -> None:
    exact = torch.tensor([3, 4], dtype=torch.float64)
    assert compare(torch.tensor([3, 4]), exact, exact, TOLERANCE).mismatches == 0
    assert compare(torch.tensor([3, 5]), exact, exact, TOLERANCE).mismatches == 1


BIT_EQUAL = BoardCheck(rtol=1e-5, atol=1e-8, difference="promoted", source="pmpp")


def test_the_board_takes_the_difference_where_it_says() -> None:
    theirs = torch.tensor([1024.0, 1.0], dtype=torch.float16)
    one_step = torch.tensor([1025.0, 1.0], dtype=torch.float16)
    assert board_accepts(theirs.clone(), theirs, BIT_EQUAL)
    assert not board_accepts(one_step, theirs, BIT_EQUAL)
    loose = BoardCheck(rtol=2e-2, atol=1e-3, difference="fp32", source="amd")
    assert board_accepts(one_step, theirs, loose)


def test_the_board_looks_at_shape_and_at_odd_values() -> None:
    theirs = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert board_accepts(theirs.clone(), theirs, BIT_EQUAL)
    assert not board_accepts(theirs[:2], theirs, BIT_EQUAL)
    for place, value in [(0, 1.0), (1, -math.inf), (2, 1.0), (3, math.nan), (3, math.inf)]:
        out = theirs.clone()
        out[place] = value
        assert not board_accepts(out, theirs, BIT_EQUAL)


def inputs() -> tuple[torch.Tensor, dict[str, torch.Tensor], int, torch.Tensor]:
    a = torch.randn(8, 6).to(torch.float8_e4m3fnuz).T
    return a, {"mask": torch.tensor([1, 2, 3])}, 7, torch.zeros(3, 5, dtype=torch.float16)


def test_inputs_keep_their_layout_and_outputs_are_poisoned() -> None:
    data = inputs()
    layout, memory = lay_out(data, (3,)), HostMemory(4096)
    fill(layout, memory.tensor)
    a, mask, out = (span.view(memory.tensor) for span in layout.spans)
    assert a.stride() == data[0].stride() and torch.equal(a.float(), data[0].float())
    assert mask.tolist() == [1, 2, 3]
    assert bool(out.isnan().all())
    assert all(span.offset % ALIGNMENT == 0 for span in layout.spans)
    nodes = layout.tree["items"]
    assert nodes[0]["dtype"] == "float8_e4m3fnuz" and nodes[0]["stride"] == [1, 6]
    assert nodes[1]["items"]["mask"]["offset"] == layout.spans[1].offset and nodes[2] == {"t": "value", "value": 7}
    memory.close()


def test_a_written_input_is_found_and_a_written_output_is_not() -> None:
    layout, memory = lay_out(inputs(), (3,)), HostMemory(4096)
    fill(layout, memory.tensor)
    assert changed(layout, memory.tensor) == []
    layout.spans[2].view(memory.tensor).zero_()
    assert changed(layout, memory.tensor) == []
    memory.tensor[layout.spans[1].offset + 8] ^= 1
    assert changed(layout, memory.tensor) == [1]
    memory.tensor[layout.spans[0].offset] ^= 0x80
    assert changed(layout, memory.tensor) == [0, 1]
    memory.close()


def test_noise_poisons_whole_numbers() -> None:
    data = (torch.zeros(1000, dtype=torch.int64),)
    layout, memory = lay_out(data, (0,)), HostMemory(8000)
    fill(layout, memory.tensor)
    first = layout.spans[0].view(memory.tensor).clone()
    fill(layout, memory.tensor)
    assert not torch.equal(first, layout.spans[0].view(memory.tensor)) and len(first.unique()) > 990
    memory.close()


def test_a_guest_cannot_resize_the_memory() -> None:
    import os

    memory = HostMemory(1 << 16)
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(memory.fd, size)
    memory.close()


def test_a_board_may_forgive_a_share_of_the_elements_and_scale_with_the_case() -> None:
    theirs, out = torch.ones(100), torch.ones(100)
    out[:5] = 2
    forgiving = BoardCheck(rtol=0.1, atol=0.1, missed_share=0.05, difference="fp32", source="mixed-mla")
    assert board_accepts(out, theirs, forgiving) and not board_accepts(out, theirs, BIT_EQUAL)
    out[5] = math.nan
    assert not board_accepts(out, theirs, forgiving)
    assert board_accepts(out[:5], theirs[:5], forgiving, scale=5) and not board_accepts(out[:5], theirs[:5], forgiving)
