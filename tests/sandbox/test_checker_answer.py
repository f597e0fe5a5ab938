"""Answers of a hostile guest, field by field."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sandbox.checker.answer import Forged, Unfit, read
from sandbox.checker.layout import Span
from sandbox.checker.legible import as_json
from sandbox.profile import Profile

SHAPE = (4, 6)
BUFFERS = {0: 4096, 1: 64}
GOOD: dict[str, Any] = {
    "t": "tensor",
    "dtype": "float16",
    "shape": [4, 6],
    "stride": [6, 1],
    "buffer": 1,
    "offset": 16,
}


def place(tree: object) -> tuple[int, Span]:
    return read(tree, torch.float16, SHAPE, BUFFERS)


def test_the_right_answer_is_placed() -> None:
    assert place(GOOD) == (1, Span(torch.float16, SHAPE, (6, 1), 16))


@pytest.mark.parametrize(
    "change",
    [
        {"stride": [0, 0], "offset": 62},
        {"stride": [1, 4], "offset": 0},
        {"buffer": 0, "stride": [100, 10], "offset": 4096 - 2 * (3 * 100 + 5 * 10 + 1)},
    ],
)
def test_any_layout_inside_a_buffer_will_do(change: dict[str, Any]) -> None:
    buffer, span = place({**GOOD, **change})
    assert span.offset + span.bytes <= BUFFERS[buffer]


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 18},
        {"offset": 1},
        {"offset": -2},
        {"offset": 1 << 63},
        {"offset": 16.0},
        {"offset": None},
        {"offset": True},
        {"stride": [7, 1]},
        {"stride": [-6, 1]},
        {"stride": [1 << 40, 1]},
        {"stride": [1]},
        {"stride": [6, 1, 1]},
        {"stride": "61"},
        {"buffer": 2},
        {"buffer": -1},
        {"buffer": "1"},
        {"buffer": False},
        {"shape": [4, "6"]},
        {"shape": [1] * 100},
        {"shape": {"0": 4}},
        {"dtype": None},
        {"dtype": "f" * 1000},
        {"extra": 1},
    ],
)
def test_what_no_honest_guest_says_is_forged(change: dict[str, Any]) -> None:
    with pytest.raises(Forged):
        place({**GOOD, **change})


def test_a_missing_field_is_forged() -> None:
    for name in ("dtype", "shape", "stride", "buffer", "offset"):
        with pytest.raises(Forged):
            place({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize("tree", [None, 1, "tensor", [], {}, {"t": 1}, {"t": None}, [GOOD]])
def test_what_is_no_tree_is_forged(tree: object) -> None:
    with pytest.raises(Forged):
        place(tree)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"t": "value", "value": None}, "the value None"),
        ({"t": "tuple", "items": [GOOD]}, "a tuple"),
        ({"t": "other", "type": "evil.Tensor"}, "evil.Tensor"),
        ({"t": "other", "type": "x" * 10_000}, "float16 tensor"),
        ({"t": "other", "type": "\ud800"}, r"not \?$"),
        ({"t": "\ud800"}, r"not a \?$"),
        ({"t": "value", "value": [[[]]]}, "not a value$"),
        ({**GOOD, "dtype": "\ud800"}, r"returned \?,"),
        ({**GOOD, "dtype": "float32"}, "float32"),
        ({**GOOD, "dtype": "__class__"}, "__class__"),
        ({**GOOD, "shape": [6, 4]}, r"\[6, 4\]"),
        ({**GOOD, "shape": [24], "stride": [1]}, r"\[24\]"),
        ({**GOOD, "buffer": None}, "cannot be read"),
    ],
)
def test_an_honest_answer_of_another_kind_is_unfit(tree: object, message: str) -> None:
    with pytest.raises(Unfit, match=message) as caught:
        place(tree)
    assert len(str(caught.value)) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner, max_size=7),
    max_leaves=12,
)


@given(JSON, st.sampled_from(list(GOOD)))
def test_any_json_is_placed_inside_or_refused(value: object, field: str) -> None:
    for tree in (value, {**GOOD, field: value}):
        try:
            buffer, span = place(tree)
        except (Forged, Unfit) as refusal:
            assert str(refusal).encode()
            continue
        assert span.shape == SHAPE and 0 <= span.offset <= span.offset + span.bytes <= BUFFERS[buffer]


def test_whatever_way_a_guests_text_took_it_leaves_as_json() -> None:
    profile = Profile(tool="t\ud800", counters={"k\udfff": 1.0}, notes=("honest",))
    assert Profile.model_validate_json(as_json(profile)) == Profile(tool="t?", counters={"k?": 1.0}, notes=("honest",))
    assert as_json(Profile(tool="é")) == '"é"'.encode().join(as_json(Profile(tool="T")).split(b'"T"'))
