"""The CPU image: no system of its own, only the places where the machine's is bound, read-only. Nothing is pulled."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from sandbox.isolation.view import View

REPOSITORY = "kernelwright-root"
_FOLDERS = ("/dev", "/etc", "/proc", "/run", "/sys", "/var/tmp")
_SCRATCH = "/tmp"
"""An engine's tmpfs takes the mode of the folder it covers."""


def tag(archive: bytes) -> str:
    """The image's name: one for each content, since not every engine keeps a tag given on import."""
    return f"{REPOSITORY}-{hashlib.sha256(archive).hexdigest()[:16]}:latest"


def root_archive(view: View, more: tuple[str, ...] = ()) -> bytes:
    """A tar of empty folders and files for the mounts of `view`, and of folders for `more`, with the system's links."""
    folders = [Path(path) for path in (*_FOLDERS, *more, view.code[1])]
    folders += [Path(path) for path in view.read_only if Path(path).is_dir()]
    files = [Path(path) for path in view.read_only if not Path(path).is_dir()]
    every = {*folders, *(parent for path in (*folders, *files) for parent in path.parents)} - {Path("/")}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(every):
            archive.addfile(_entry(path, tarfile.DIRTYPE, 0o755))
        archive.addfile(_entry(Path(_SCRATCH), tarfile.DIRTYPE, 0o1777))
        for path in sorted(set(files)):
            archive.addfile(_entry(path, tarfile.REGTYPE, 0o644))
        for target, link in sorted(view.links):
            entry = _entry(Path(link), tarfile.SYMTYPE, 0o777)
            entry.linkname = target
            archive.addfile(entry)
    return buffer.getvalue()


def _entry(path: Path, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(path).lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry
