"""Several tensors returned, objects and host memory among the inputs: what the checker reads, fills and watches."""

from typing import Any

import pytest
import torch

from problems.made import Made
from sandbox.checker.answer import Forged, Part, Unfit, Wanted, read_all
from sandbox.checker.layout import HOST, INPUTS, Rights, changed, fill, lay_out
from sandbox.checker.memory import HostMemory
from sandbox.guest.memory import Buffer
from sandbox.guest.objects import KVCache
from sandbox.guest.tree import decode

GOOD: dict[str, Any] = {"t": "tensor", "dtype": "float16", "shape": [2], "stride": [1], "buffer": 1, "offset": 0}
OTHER = {**GOOD, "dtype": "int64", "shape": [3, 1], "stride": [1, 3], "offset": 8}
BUFFERS = {0: 4096, 1: 64}
WANTED = Wanted((Part(torch.float16, (2,)), Part(torch.int64, (3, 1))), several=True)


@pytest.mark.parametrize("kind", ["tuple", "list"])
def test_every_part_is_placed(kind: str) -> None:
    places = read_all({"t": kind, "items": [GOOD, OTHER]}, WANTED, BUFFERS)
    assert [(where, span.dtype, span.shape, span.offset) for where, span in places] == [
        (1, torch.float16, (2,), 0),
        (1, torch.int64, (3, 1), 8),
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([GOOD], "returned 1 things, the case asks for 2"),
        ([GOOD, OTHER, GOOD], "returned 3 things"),
        ([OTHER, GOOD], "of 2 tensors, number 0: custom_kernel returned int64"),
        ([GOOD, {**OTHER, "shape": [3], "stride": [1]}], r"number 1: .*shape \[3\]"),
        ([GOOD, {"t": "tuple", "items": [OTHER]}], "number 1: .*not a tuple"),
        ([GOOD, {"t": "value", "value": None}], "the value None"),
    ],
)
def test_parts_of_another_kind_are_unfit(items: list[Any], message: str) -> None:
    with pytest.raises(Unfit, match=message):
        read_all({"t": "list", "items": items}, WANTED, BUFFERS)
    with pytest.raises(Unfit, match="2 tensors in a tuple or list, not"):
        read_all(items[0] if items[0]["t"] == "tensor" else GOOD, WANTED, BUFFERS)


@pytest.mark.parametrize(
    "tree",
    [
        {"t": "list", "items": {"0": GOOD, "1": OTHER}},
        {"t": "list", "items": [GOOD, OTHER], "kind": "x"},
        {"t": "list"},
        {"t": "list", "items": [GOOD, {**OTHER, "offset": 48}]},
        {"t": "list", "items": [GOOD, {**OTHER, "buffer": 2}]},
        {"t": "list", "items": [GOOD, None]},
    ],
)
def test_parts_that_no_honest_guest_tells_are_forged(tree: object) -> None:
    with pytest.raises(Forged):
        read_all(tree, WANTED, BUFFERS)


def test_a_cache_is_an_object_filled_and_free_to_change_and_the_host_keeps_its_own() -> None:
    rows = torch.arange(24.0).view(1, 4, 6)
    data = (
        Made("config", {"sizes": (4, 6), "weight": torch.ones(3)}),
        [(torch.ones(2), torch.zeros(2))],
        Made("kv-cache", {"data": rows, "seq_len": 2}),
    )
    layout = lay_out(data, Rights(writable=("1/*/1",), updated=("2/data",), on_host=("1/0/0",)))
    inputs, host = HostMemory(layout.bytes), HostMemory(layout.host_bytes, "cpu")
    fill(layout, inputs.tensor, host=host.tensor)
    seen = {INPUTS: Buffer(inputs.tensor, inputs.tensor), HOST: Buffer(host.tensor, host.tensor)}
    config, [(on_host, out)], cache = decode(layout.tree, seen)
    assert (config.sizes, config.weight.tolist()) == ((4, 6), [1, 1, 1])
    assert on_host.tolist() == [1, 1] and bool(out.isnan().all()) and isinstance(cache, KVCache)
    filled, count = cache(torch.full((1, 1, 6), 7.0))
    assert count == cache.seq_len == 3 and filled.shape == (1, 3, 6) and cache.get_data()[0, 2].tolist() == [7] * 6
    with pytest.raises(AssertionError, match="do not fit"):
        cache(torch.zeros(1, 2, 6))
    assert changed(layout, inputs.tensor, host.tensor) == []
    config.weight[1] = on_host[0] = 5
    assert changed(layout, inputs.tensor, host.tensor) == [0, 1]
    with pytest.raises(ValueError, match="unknown kind"):
        decode({"t": "object", "kind": "os.system", "items": {}}, seen)
    inputs.close()
    host.close()
