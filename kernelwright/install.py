"""Set up an environment. Standard library only: it runs before anything is installed.

``--torch cpu`` installs the CPU torch and the triton of ``constraints-cpu.txt``. ``--torch system`` builds on the torch
of the interpreter that runs this file and changes neither its torch nor its triton.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FROZEN = ("torch", "triton")
OWNERS = (
    "import importlib.metadata as m, json; d = m.packages_distributions();"
    "print(json.dumps({n: sorted((x, m.version(x)) for x in set(d.get(n, []))) for n in ('torch', 'triton')}))"
)


def main() -> None:
    """Make the environment, or leave it alone where it is already the one asked for."""
    arguments = _arguments()
    _system_packages(arguments.system_packages)
    stamp = arguments.venv / "kernelwright.stamp"
    if stamp.is_file() and stamp.read_text() == _wanted(arguments.torch):
        return
    print(f"setting up {arguments.venv} (torch: {arguments.torch}); the first time takes a few minutes", flush=True)
    _make_environment(arguments.venv, system=arguments.torch == "system")
    install = _install_on_system_torch if arguments.torch == "system" else _install_cpu
    install(arguments.venv / "bin" / "python")
    stamp.write_text(_wanted(arguments.torch))


def requirements(pyproject: Path) -> list[str]:
    """The project's dependencies and its ``dev`` and ``hip`` extras, without torch and triton."""
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"], *extras["hip"]]
    return [line for line in wanted if not line.startswith(FROZEN)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--torch", choices=("cpu", "system"), default="cpu")
    parser.add_argument("--system-packages", nargs="*", default=[])
    return parser.parse_args()


def _wanted(torch: str) -> str:
    files = [ROOT / "pyproject.toml", ROOT / "constraints-cpu.txt", Path(__file__)]
    content = b"".join(path.read_bytes() for path in files) + f"{torch} {sys.version} {ROOT}".encode()
    return hashlib.sha256(content).hexdigest()


def _make_environment(venv: Path, *, system: bool) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(venv)], "could not make the environment")
    if system:
        # Not --system-site-packages: that shows the base interpreter's packages; torch often lies in an environment.
        ours = next((venv / "lib").glob("python*/site-packages"))
        shown = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
        (ours / "kernelwright-system.pth").write_text("".join(f"{entry}\n" for entry in shown))


def _install_cpu(python: Path) -> None:
    constraints = ["--constraint", str(ROOT / "constraints-cpu.txt")]
    # torch first and alone: left to the resolver, another package's "torch" would take the registry's CUDA build.
    for step in (["torch"], ["-e", f"{ROOT}[dev,hip]"]):
        _pip(python, [*constraints, *step])


def _install_on_system_torch(python: Path) -> None:
    before = owners(python)
    if "torch" not in before:
        sys.exit(f"{sys.executable} has no torch. Install your ROCm or CUDA torch there first, or use: make TORCH=cpu")
    _pip(python, requirements(ROOT / "pyproject.toml"))
    _pip(python, ["--no-deps", "-e", str(ROOT)])
    after = owners(python)
    if after != before:
        sys.exit(
            f"the set-up changed torch or triton: before {before}, after {after}. Remove the environment and report it."
        )
    print(two_owners(after), end="")


def two_owners(found: dict[str, list[list[str]]]) -> str:
    """A line of warning where two distributions own triton/, else nothing."""
    if len(found.get("triton", [])) < 2:
        return ""
    names = " and ".join(f"{name} {version}" for name, version in found["triton"])
    return f"warning: two distributions own triton/: {names}. Uninstall the one your torch did not bring.\n"


def owners(python: Path) -> dict[str, list[list[str]]]:
    """The distributions that own torch/ and triton/ for `python`, each as (name, version)."""
    found = json.loads(subprocess.run([python, "-c", OWNERS], check=True, capture_output=True, text=True).stdout)
    return {name: owners for name, owners in found.items() if owners}


def _pip(python: Path, arguments: list[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", *arguments]
    _run(command, "pip failed; see its message above")


def _run(command: list[str], failure: str) -> None:
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"{failure}\n  {' '.join(command)}")


def _system_packages(names: list[str]) -> None:
    """Install Debian packages where this is root on such a machine; elsewhere say what is missing and go on."""
    commands = {"bubblewrap": "bwrap"}
    missing = [name for name in names if shutil.which(commands.get(name, name)) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not installed: {' '.join(missing)} (needs root: apt-get install {' '.join(missing)}); going on without")
        return
    print(f"installing {' '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"apt-get could not install {' '.join(missing)}; going on without\n{done.stderr[-500:]}")


if __name__ == "__main__":
    main()
