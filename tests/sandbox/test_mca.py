"""The table of MFMA cycles against LLVM's own scheduling model, where a recent llvm-mca is installed (apt: llvm-19).

LLVM counts an MFMA in passes of four cycles, and knows gfx942; it has no model of gfx950, and does not tell how wide an
LDS or memory access is, so that those parts of the table are not compared.
"""

import os
import re
import shutil
import subprocess

import pytest

from sandbox.pipes import mfma

MCA = os.environ.get("LLVM_MCA") or shutil.which("llvm-mca-19") or shutil.which("llvm-mca-20")
INSTRUCTIONS = {
    "v_mfma_f32_32x32x8_f16": (2, 2, 16),
    "v_mfma_f32_16x16x16_f16": (2, 2, 4),
    "v_mfma_f32_32x32x8_bf16": (2, 2, 16),
    "v_mfma_f32_16x16x16_bf16": (2, 2, 4),
    "v_mfma_f32_32x32x16_fp8_fp8": (2, 2, 16),
    "v_mfma_f32_16x16x32_fp8_fp8": (2, 2, 4),
    "v_mfma_f32_32x32x16_bf8_fp8": (2, 2, 16),
    "v_mfma_i32_32x32x16_i8": (2, 2, 16),
    "v_mfma_i32_16x16x32_i8": (2, 2, 4),
    "v_mfma_f32_16x16x8_xf32": (2, 2, 4),
    "v_mfma_f32_32x32x4_xf32": (2, 2, 16),
    "v_mfma_f32_32x32x2_f32": (1, 1, 16),
    "v_mfma_f32_16x16x4_f32": (1, 1, 4),
    "v_mfma_f64_16x16x4_f64": (2, 2, 8),
}
"""Registers of the two operands and of the result."""


def passes(name: str) -> float:
    """What llvm-mca says one of them keeps the matrix unit, in passes."""
    a, b, c = INSTRUCTIONS[name]

    def registers(first: int, count: int) -> str:
        return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"

    line = f"{name} {registers(0, c)}, {registers(32, a)}, {registers(40, b)}, {registers(0, c)}\n"
    command = [str(MCA), "-mtriple=amdgcn", "-mcpu=gfx942", "-iterations=1"]
    said = subprocess.run(command, input=line, capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(r"Block RThroughput:\s+([\d.]+)", said)
    assert found is not None
    return float(found[1])


@pytest.mark.slow
@pytest.mark.skipif(MCA is None, reason="no llvm-mca that knows gfx942")
def test_mfma_cycles_agree_with_llvms() -> None:
    ours = {name: mfma(name, "", "gfx942")[1] for name in INSTRUCTIONS}
    assert ours == {name: 4 * passes(name) for name in INSTRUCTIONS}
