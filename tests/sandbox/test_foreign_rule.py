"""Values from elsewhere are read strictly, and answers are held against what the reference's own error allows."""

from typing import Any

import pytest
import torch

from sandbox.checker.foreign_rule import against_exact, close, distance
from sandbox.checker.foreign_tree import Malformed, Value, owned, read

TENSOR = {"t": "tensor", "dtype": "float32", "shape": [4], "stride": [1], "buffer": 0, "offset": 0}


def held(*tensors: torch.Tensor) -> Value:
    """Tensors as the checker keeps what a guest returned."""
    room, items, at = torch.zeros(1 << 20, dtype=torch.uint8), [], 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        room[at : at + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)
        name = str(tensor.dtype).removeprefix("torch.")
        items.append(
            {**TENSOR, "dtype": name, "shape": list(tensor.shape), "stride": list(tensor.stride()), "offset": at}
        )
        at += -(-size // 512) * 512
    return owned({"t": "tuple", "items": items}, {0: room})


@pytest.mark.parametrize(
    "tree",
    [
        {**TENSOR, "shape": [5]},
        {**TENSOR, "offset": 2},
        {**TENSOR, "buffer": 7},
        {**TENSOR, "stride": [-1]},
        {**TENSOR, "dtype": "load"},
        {"t": "object", "module": "os", "name": "system", "fields": {}},
        {"t": "object", "module": "reference", "name": "Config.__init__", "fields": {}},
        {"t": "dict", "items": []},
        {"t": "tuple", "items": [{"t": "other", "type": "x"}]},
        None,
    ],
)
def test_what_no_honest_guest_sends_is_refused(tree: Any) -> None:
    with pytest.raises(Malformed):
        read(tree, {0: 16}, ("reference",))


def test_a_tree_that_has_no_end_is_refused() -> None:
    deep: dict[str, Any] = TENSOR
    for _ in range(40):
        deep = {"t": "tuple", "items": [deep]}
    with pytest.raises(Malformed):
        read(deep, {0: 16})


def test_another_order_of_sums_passes_and_a_narrower_dtype_does_not() -> None:
    one, other = torch.randn(96, 256), torch.randn(256, 80)
    own, exact = held(one @ other), held(one.double() @ other.double())
    turned = (one[:, ::2] @ other[::2]) + (one[:, 1::2] @ other[1::2])
    assert not against_exact(held(turned), own, exact).reason
    for narrow in (torch.bfloat16, torch.float16):
        assert against_exact(held((one.to(narrow) @ other.to(narrow)).float()), own, exact).reason
    assert against_exact(held(torch.zeros(96, 80)), own, exact).reason
    assert "has shape" in against_exact(held(torch.zeros(80, 96)), own, exact).reason
    assert "float64" in against_exact(exact, own, exact).reason


def test_small_values_are_judged_by_their_own_size() -> None:
    """KernelBench's tolerance takes zeros for a softmax over many; ours does not."""
    wide = torch.randn(2, 1 << 13).double().softmax(1)
    own, zeros = held(wide.float()), held(torch.zeros(2, 1 << 13))
    assert close(zeros, own, 1e-2) and not close(zeros, own, 1e-5)
    assert against_exact(zeros, own, held(wide)).reason
    assert distance(zeros, own, own).reason
    assert not distance(own, own, own).reason
