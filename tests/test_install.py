"""Setting up on a user's own torch: a real environment is made, and pip really runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.install import owners, requirements, two_owners

ROOT = Path(__file__).resolve().parent.parent
SEEN = "import torch, triton; print(torch.__file__, torch.__version__, triton.__file__, triton.__version__)"


def distribution(site: Path, name: str, version: str, package: str) -> None:
    """A distribution that owns `package`, as an installer would leave it."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text(f"{package}/__init__.py,,\n{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")
    (site / package).mkdir(exist_ok=True)
    (site / package / "__init__.py").write_text(f"__version__ = {version!r}\n")


@pytest.fixture(scope="module")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a ROCm build of torch, whose triton goes by a name of its own."""
    folder = tmp_path_factory.mktemp("rocm")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    distribution(site, "torch", "2.11.0+rocm7.1", "torch")
    distribution(site, "pytorch-triton-rocm", "3.6.0+rocm7.1", "triton")
    return folder


def installed(rocm: Path, venv: Path) -> subprocess.CompletedProcess[str]:
    command = [rocm / "bin/python", ROOT / "kernelwright/install.py", "--venv", venv, "--torch", "system"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def index_answers(folder: Path) -> bool:
    asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", folder, "typer"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_the_users_torch_and_triton_are_left_alone(rocm: Path, tmp_path: Path) -> None:
    if not index_answers(tmp_path):
        pytest.skip("no package index can be reached from here")
    before = subprocess.check_output([rocm / "bin/python", "-c", SEEN], text=True)
    done = installed(rocm, tmp_path / "venv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two distributions own" not in done.stdout
    assert subprocess.check_output([rocm / "bin/python", "-c", SEEN], text=True) == before
    assert subprocess.check_output([tmp_path / "venv/bin/python", "-c", SEEN], text=True) == before
    ours = {path.name for path in next((tmp_path / "venv/lib").glob("python*/site-packages")).iterdir()}
    assert "torch" not in ours and "triton" not in ours and "langgraph" in ours
    listed = subprocess.check_output([tmp_path / "venv/bin/kernelwright", "problems", "list"], text=True)
    assert "amd/fp8-mm" in listed


@pytest.mark.slow
def test_a_second_owner_of_triton_is_reported(rocm: Path, tmp_path: Path) -> None:
    python = rocm / "bin/python"
    assert two_owners(owners(python)) == ""
    site = next((rocm / "lib").glob("python*/site-packages"))
    distribution(site, "triton", "3.9.0", "triton")
    warning = two_owners(owners(python))
    assert "pytorch-triton-rocm 3.6.0+rocm7.1" in warning and "triton 3.9.0" in warning


@pytest.mark.slow
def test_a_missing_torch_is_said_before_anything_is_installed(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", bare], check=True)
    done = installed(bare, tmp_path / "venv")
    assert done.returncode == 1 and "has no torch" in done.stderr


def test_torch_and_triton_are_never_among_what_is_installed_on_a_system_torch() -> None:
    names = requirements(ROOT / "pyproject.toml")
    assert names and not [name for name in names if name.startswith(("torch", "triton"))]
