"""The guest's parts, without a process: number formats, trees, the record."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

from sandbox.guest import floats
from sandbox.guest.memory import Buffer
from sandbox.guest.record import Record
from sandbox.guest.tree import Encoder, decode

FP8 = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e4b8: torch.float8_e4m3fnuz, tl.float8e5b16: torch.float8_e5m2fnuz}


def test_bf16_rounds_as_torch_does() -> None:
    """Every upper half of an fp32, with the lower halves that decide a rounding."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = np.concatenate([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    values = bits.view(np.float32)
    ours = torch.from_numpy(floats.to_bf16(values).data.view(np.int16)).view(torch.bfloat16)
    theirs = torch.from_numpy(values).to(torch.bfloat16)
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours[~ours.isnan()], theirs[~theirs.isnan()])


@pytest.mark.parametrize("kind", FP8, ids=str)
def test_fp8_round_trips_and_saturates(kind: tl.dtype) -> None:
    patterns = np.arange(256, dtype=np.uint8)
    wide = floats.widen(floats.Handle(patterns, kind)).data
    finite = np.isfinite(wide)
    back = floats.to_fp8(wide, kind).data
    assert np.array_equal(floats.widen(floats.Handle(back, kind)).data[finite], wide[finite])
    largest = wide[finite].max()
    out = floats.widen(floats.to_fp8(np.array([1e9, -1e9, np.nan], dtype=np.float32), kind)).data
    assert out[0] == largest and out[1] == -largest and np.isnan(out[2])


def host_buffer(size: int) -> Buffer:
    memory = torch.zeros(size, dtype=torch.uint8)
    return Buffer(memory, memory)


@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    dtype=st.sampled_from(["float16", "bfloat16", "float8_e4m3fnuz", "int64", "bool"]),
    transposed=st.booleans(),
)
def test_a_copied_tensor_comes_back_equal(rows: int, columns: int, dtype: str, transposed: bool) -> None:
    value = torch.arange(rows * columns).reshape(rows, columns).to(getattr(torch, dtype))
    value = value.t() if transposed else value
    buffers = {0: host_buffer(64), 9: host_buffer(4096)}
    tree = Encoder(buffers, 9, "cpu").encode([torch.zeros(3), value])
    out = decode(json.loads(json.dumps(tree)), buffers)[1]
    assert tree["items"][1]["offset"] == 256
    assert out.dtype == value.dtype and torch.equal(out.double(), value.double())


def test_a_tensor_without_memory_is_made_on_meta() -> None:
    tree = {"t": "tensor", "dtype": "float16", "shape": [1 << 20, 1 << 20], "stride": [1, 1 << 20]}
    value = decode({**tree, "buffer": None, "offset": 0}, {})
    assert value.is_meta and value.stride() == (1, 1 << 20)
    assert Encoder({}, None, "meta").encode(value) == {**tree, "buffer": None, "offset": 0}


def test_a_view_past_its_buffer_is_refused() -> None:
    tree = {"t": "tensor", "dtype": "int32", "shape": [17], "stride": [1], "buffer": 0, "offset": 0}
    with pytest.raises(ValueError, match="out of bounds"):
        decode(tree, {0: host_buffer(64)})


def test_each_tensor_has_a_storage_of_its_own() -> None:
    buffers = {0: host_buffer(4096)}
    tree = {"t": "tensor", "dtype": "float16", "shape": [4, 4], "stride": [1, 4], "buffer": 0, "offset": 512}
    value = decode(tree, buffers)
    assert value.untyped_storage().size() == 32 and value.storage_offset() == 0
    value.fill_(1)
    assert buffers[0].memory.count_nonzero() == 16
    assert Encoder(buffers, None, "cpu").encode(value[:, 1:])["offset"] == 520


def test_the_record_drops_text_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.guest.record.MAX_TEXT_BYTES", 10)
    record = Record()
    for number in range(2):
        metadata = SimpleNamespace(hash=f"h{number}", name=f"k{number}", num_warps=4)
        kernel = SimpleNamespace(metadata=metadata, asm={"ttir": "1234", "amdgcn": "5678"}, src=None)
        assert record.compiled(kernel, "gfx942") == number == record.compiled(kernel, "gfx942")
    record.launched(0, (1, 2, 3), {"n": 7, "scale": float("inf"), "x": torch.zeros(1)})
    payload = json.loads(record.payload(0))
    assert [kernel["amdgcn"] for kernel in payload["kernels"]] == ["5678", ""]
    assert payload["launches"] == [{"kernel": 0, "grid": [1, 2, 3], "args": {"n": 7}, "call": -1, "tuning": False}]
