"""The guest on a real GPU: buffers of both kinds, event times, and which kernels ran."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.sandbox import guest_candidates as candidates
from tests.sandbox.guest_client import RESULT_ID, GuestClient, tensor_tree

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here"),
]
N = 1 << 22


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[GuestClient]:
    with GuestClient("device", "gfx942", tmp_path / "log") as client:
        yield client
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_staged_host_buffers(guest: GuestClient) -> None:
    assert guest.ready["versions"]["device"] == torch.cuda.get_device_name(0)
    assert guest.load(candidates.KERNELS.replace("assert torch.version.hip and ", "assert ")) == {"op": "loaded"}
    x, y = torch.randn(2000).half(), torch.randn(2000).half()
    answer = guest.call(x, y, torch.zeros(2000, dtype=torch.float16), timed=True)
    assert answer["tree"]["buffer"] == 2 and answer["event_us"] > 0
    assert torch.equal(guest.tensor(answer["tree"]), x + y)
    assert guest.kernels() == {"kernels": [], "launches": []}

    a, b = torch.randn(256, 256).half(), torch.randn(256, 256).half()
    answer = guest.call(a, b)
    assert answer["op"] == "returned" and answer["event_us"] is None
    exact = torch.nn.functional.leaky_relu(a.double() @ b.double(), 0.5)
    assert torch.allclose(guest.tensor(answer["tree"]).double(), exact, rtol=1e-3, atol=1e-3)
    record = guest.kernels()
    (launch,) = record["launches"]
    kernel = record["kernels"][launch["kernel"]]
    assert (kernel["name"], kernel["target"]) == ("matmul", guest.ready["versions"]["arch"])
    assert launch["args"]["M"] == 256 and launch["call"] == 1 and not launch["tuning"]
    assert len(record["kernels"]) > 1, "the autotuner's other configurations"


@pytest.mark.slow
@pytest.mark.skipif(torch.version.cuda is None, reason="buffers are exported with the CUDA driver")
def test_buffers_of_device_memory(guest: GuestClient) -> None:
    """Fresh data in the same buffers, checked after every call; a short kernel's time is in the range of its bytes."""
    assert guest.load(candidates.KERNELS.replace("assert torch.version.hip and ", "assert ")) == {"op": "loaded"}
    shared = {number: _export(N * 2) for number in (0, 1, 2, RESULT_ID)}
    items = [{"id": number, "bytes": size, "kind": "cuda"} for number, (_, size, _) in shared.items()]
    fds = tuple(fd for _, _, fd in shared.values())
    assert guest.ask({"op": "buffers", "items": items}, fds=fds).op == "mapped"
    x, y, out = (shared[number][0].view(torch.float16)[:N] for number in (0, 1, 2))
    leaf = tensor_tree(out)
    data = {"t": "tuple", "items": [{**leaf, "buffer": number, "offset": 0} for number in (0, 1, 2)]}
    times_us = []
    for _ in range(20):
        x.normal_(), y.normal_(), out.fill_(float("nan"))
        torch.cuda.synchronize()
        answer = guest.ask({"op": "call", "data": data, "result": RESULT_ID, "head_start": 200_000}).header
        assert answer["op"] == "returned" and answer["tree"]["buffer"] == 2, answer
        assert torch.equal(out, x + y)
        times_us.append(answer["event_us"])
    assert 1 < sorted(times_us)[10] < 2000


def _export(size: int) -> tuple[torch.Tensor, int, int]:
    """A VMM allocation: its bytes as a tensor, its size, and a descriptor of it."""
    from cuda.bindings import driver

    from sandbox.guest.memory import map_cuda

    def checked(answer: Any) -> Any:
        status, *values = answer
        assert int(status) == 0, status
        return values[0]

    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.requestedHandleTypes = kind
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    granule = checked(driver.cuMemGetAllocationGranularity(prop, least))
    size = -(-size // granule) * granule
    handle = checked(driver.cuMemCreate(size, prop, 0))
    fd = int(checked(driver.cuMemExportToShareableHandle(handle, kind, 0)))
    return map_cuda(os.dup(fd), size).memory, size, fd
