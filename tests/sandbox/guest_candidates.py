"""Submissions that the guest tests load, as their authors would write them."""

KERNELS = """#!POPCORN leaderboard amd-fp8-mm
import inspect
import sys

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import sqrt
from task import input_t, output_t
from utils import DeterministicContext, make_match_reference, verbose_allclose

assert torch.version.hip and torch.cuda.is_available()
NEGATIVE_SLOPE = tl.constexpr(0.5)


@triton.jit
def leaky(x):
    return tl.where(x > 0, x, x * NEGATIVE_SLOPE)


@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if EVEN:
        tl.store(out + offsets, tl.load(x + offsets) + tl.load(y + offsets))
    else:
        tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 128, "BK": 128}, num_warps=8, num_stages=4),
        triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=4, num_stages=2),
        triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4, num_stages=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * sam + (k + depth)[None, :] * sak)
        y = tl.load(b + (k + depth)[:, None] * sbk + columns[None, :] * sbn)
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], leaky(total))


@triton.jit
def library(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.store(out + offsets, libdevice.tanh(values) + libdevice.pow(tl.abs(values), 1.5) + sqrt(tl.abs(values)))


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + offsets, mask=offsets < n, other=-float("inf"))
    row = tl.exp((row - tl.max(row, 0)).to(tl.float32))
    tl.store(out + tl.program_id(0) * n + offsets, (row / row.sum(0)).to(out.dtype.element_ty), mask=offsets < n)


def make_to_fp8(size):
    BLOCK = tl.constexpr(size)

    @triton.jit
    def to_fp8(x, out):
        offsets = tl.arange(0, BLOCK)
        tl.store(out + offsets, tl.load(x + offsets).to(out.dtype.element_ty))

    return to_fp8


def custom_kernel(data: input_t) -> output_t:
    assert all(x.is_cuda and x.device.type == "cuda" for x in data)
    assert "custom_kernel" in inspect.getsource(custom_kernel)
    if len(data) == 1 and data[0].dim() == 3:
        out = torch.empty_like(data[0])
        library[(1,)](data[0], out, BLOCK=out.numel())
        return out
    if len(data) == 1 and data[0].dim() == 2:
        (x,) = data
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
    if len(data) == 1:
        out = torch.empty(data[0].shape, device=torch.device("cuda:0"), dtype=torch.float8_e4m3fnuz)
        make_to_fp8(out.numel())[(1,)](data[0], out)
        return out
    if len(data) == 3:
        x, y, out = data
        kernel = add.warmup(x, y, out, x.numel(), BLOCK=256, grid=(1,))
        assert kernel.metadata.shared == 0
        add[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), BLOCK=1024)
        return out
    a, b = data
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device="cuda", dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    matmul[grid](a, b, c, M, N, K, *a.stride(), *b.stride())
    torch.cuda.synchronize()
    return c
"""

TOO_MUCH_LDS = """import torch, triton, triton.language as tl


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        y = tl.load(b + (k + depth)[:, None] * BN + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * BN + columns[None, :], total)


@triton.jit
def assembled(x):
    offsets = tl.arange(0, 64)
    value = tl.inline_asm_elementwise("v_mov_b32 $0, $1", "=v,v", [tl.load(x + offsets)], tl.float32, True, 1)
    tl.store(x + offsets, value)


@triton.jit
def wrong(x):
    tl.store(x, tl.no_such_function(x))


def custom_kernel(data):
    a, b = data
    if a.dim() == 1 and a.numel() == 64:
        assembled[(1,)](a)
    if a.dim() == 1:
        wrong[(1,)](a)
    c = torch.empty(a.shape[0], b.shape[1], device="cuda")
    matmul[(1,)](a, b, c, a.shape[1], BM=128, BN=128, BK=64, num_warps=8, num_stages=4)
    return c
"""

RETURNS = """import sys
import torch


class Lazy(torch.Tensor):
    pass


def custom_kernel(data):
    x, which = data
    match which:
        case "in place":
            return x[1:, ::2]
        case "copies":
            return [x * 2, {"n": 3, "t": (x + 1).t()}]
        case "strange":
            return (x.as_subclass(Lazy), torch.nn.Parameter(x), object(), float("nan"), {1: 2}, x.to_sparse())
        case "too large":
            return torch.zeros(1 << 20)
        case "narrow":
            return (x.to(torch.float8_e4m3fnuz), torch.ones(3, dtype=torch.bool), torch.tensor(7))
        case "exit":
            sys.exit(0)
        case "error":
            raise ValueError("not today")
        case "deep":
            out = []
            out.append(out)
            return out
"""

HOST_READS = """import torch, triton, triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)


def custom_kernel(data):
    (x,) = data
    if x.dim() == 1 and x.sum().item() > 0:
        return x
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""

KILLS_THE_COMPILER = """import os, signal
import torch, triton, triton.language as tl

HERE = os.getpid()


def name(specialization):
    if os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGABRT)
    return "renamed"


@triton.jit(repr=name)
def double(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) * 2)


def custom_kernel(data):
    double[(1,)](data[0], BLOCK=16)
    return data[0]
"""
