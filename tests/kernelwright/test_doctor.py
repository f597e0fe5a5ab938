from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from kernelwright import doctor
from sandbox.probe import Device, Toolchain, toolchain

CPU = Toolchain(
    torch="2.13.0+cpu", torch_build="cpu", torch_error="", devices=(), triton="3.9.0", backends=("amd", "nvidia")
)
GPU = CPU.model_copy(
    update={"torch_build": "cuda", "devices": (Device(name="NVIDIA H200", arch="sm_90", memory_bytes=150 << 30),)}
)


def states(tools: Toolchain, environment: dict[str, str]) -> dict[str, doctor.Finding]:
    return {finding.what: finding for finding in doctor.examine(tools, environment)}


def test_what_is_missing_has_one_command_that_adds_it() -> None:
    found = states(CPU, {})
    assert found["GPU"].state == "missing"
    assert "TORCH=system" in found["GPU"].cure
    assert found["model endpoint"].cure.startswith("export OPENAI_API_KEY")
    assert all(finding.cure for finding in found.values() if finding.state != "ok")
    assert found["packages"].state == "ok"
    assert json.dumps(doctor.as_json(list(found.values()), CPU))


def test_a_gpu_and_a_key_are_seen() -> None:
    found = states(GPU, {"OPENAI_API_KEY": "secret-value"})
    assert "NVIDIA H200 (sm_90, 150 GiB)" in found["GPU"].seen
    assert found["model endpoint"].state == "ok"
    assert "secret-value" not in json.dumps(doctor.as_json(list(found.values()), GPU))


def test_without_torch_and_without_the_amd_backend() -> None:
    none = Toolchain(
        torch="", torch_build="none", torch_error="ImportError: no torch", devices=(), triton="", backends=()
    )
    found = states(none, {})
    assert (found["torch"].state, found["compile targets"].state) == ("broken", "broken")
    assert doctor.as_json(list(found.values()), none)["ok"] is False


def test_a_foreign_package_of_our_name_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "other-agents", "9.1", "agent")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "agent", raising=False)
    (finding,) = doctor.rooms()
    assert (finding.what, finding.state) == ("package agent", "broken")
    assert "other-agents" in finding.seen
    assert "uninstall -y other-agents" in finding.cure


def test_two_owners_of_one_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.owners("twice") == []
    installed(tmp_path, "twice", "3.9.0", "twice")
    installed(tmp_path, "pytorch-twice-rocm", "3.2.0", "twice")
    monkeypatch.syspath_prepend(str(tmp_path))
    (finding,) = doctor.owners("twice")
    assert finding.state == "broken"
    assert "pytorch-twice-rocm 3.2.0, twice 3.9.0" in finding.seen
    assert finding.cure.endswith("install --force-reinstall --no-deps pytorch-twice-rocm")


def installed(root: Path, name: str, version: str, package: str) -> None:
    """A distribution as an installer would leave it."""
    (root / package).mkdir(exist_ok=True)
    (root / package / "__init__.py").write_text("")
    info = root / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(f"{package}\n")
    assert importlib.metadata.version is not None


@pytest.mark.slow
def test_this_machine_answers() -> None:
    tools = toolchain()
    assert tools.torch == importlib.metadata.version("torch") or tools.torch.startswith("2.")
    assert "amd" in tools.backends
