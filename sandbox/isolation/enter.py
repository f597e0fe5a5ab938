"""Runs first inside fresh namespaces: builds the private root, gives up every capability, becomes the program.

A script of its own with nothing but the standard library: ``enter.py PLAN PROGRAM...``, PLAN the view as JSON.
"""

import base64
import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = NOSUID | NODEV | NOEXEC
DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, LAST_CAPABILITY = 24, 38, 63
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
OLD, NEW = "/old", "/new"
NOBODY = 65534
WRITABLE_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr", "dma")
PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_libc = ctypes.CDLL(None, use_errno=True)


def main(plan: dict[str, Any], argv: list[str]) -> None:
    """Build the root that `plan` describes, move into it and become `argv`."""
    mount("none", "/", None, REC | PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", NOSUID | NODEV)
    Path("/tmp" + OLD).mkdir()
    pivot_root("/tmp", "/tmp" + OLD)
    os.chdir("/")
    Path(NEW).mkdir()
    mount("tmpfs", NEW, "tmpfs", NOSUID | NODEV, "mode=755")
    build(plan["view"], plan["tmp_bytes"])
    check(_libc.umount2(OLD.encode(), DETACH), "umount old root")
    os.chdir(NEW)
    pivot_root(".", ".")
    check(_libc.umount2(b".", DETACH), "umount")
    os.chdir("/tmp")
    if plan["loopback"]:
        raise_loopback()
    drop(plan["view"]["groups"] if plan["nobody"] else None)
    refuse_calls(base64.b64decode(plan["filter"]))
    os.execvp(argv[0], argv)


def build(view: dict[str, Any], tmp_bytes: int) -> None:
    """Mount what the view shows under the new root."""
    for path in view["read_only"]:
        bind(path, path, read_only=True)
    for target, link in view["links"]:
        Path(NEW + link).symlink_to(target)
    for path in view["covered"]:
        mount("tmpfs", NEW + path, "tmpfs", NOSUID | NODEV | RDONLY, "size=4k")
    for path in (*PLAIN_DEVICES, *view["devices"]):
        if Path(OLD + path).exists():
            bind(path, path, read_only=False)
    source, target = view["code"]
    bind(source, target, read_only=True)
    Path(NEW + "/proc").mkdir()
    mount("proc", NEW + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # Files there ask for root's user id and no capability.
    for path in [NEW + "/proc/" + name for name in WRITABLE_PROC]:
        if Path(path).exists():
            mount(path, path, None, BIND | REC)
            mount("none", path, None, BIND | REMOUNT | RDONLY | NOSUID | NODEV | NOEXEC)
    for path in ("/tmp", "/dev/shm"):
        Path(NEW + path).mkdir(parents=True, exist_ok=True)
        mount("tmpfs", NEW + path, "tmpfs", NOSUID | NODEV, f"mode=1777,size={tmp_bytes}")
    mount("none", NEW, None, REMOUNT | RDONLY | NOSUID | NODEV, "mode=755")


def bind(source: str, target: str, read_only: bool) -> None:
    """Show the old root's `source` at the new root's `target`."""
    there, here = Path(OLD + source), Path(NEW + target)
    if there.is_dir():
        here.mkdir(parents=True, exist_ok=True)
    else:
        here.parent.mkdir(parents=True, exist_ok=True)
        here.touch()
    mount(str(there), str(here), None, BIND | REC)
    if read_only:
        # A user namespace may not clear the flags its mounts came with.
        flags = os.statvfs(here).f_flag & KEPT_FLAGS
        mount("none", str(here), None, BIND | REMOUNT | RDONLY | flags)


def drop(groups: list[int] | None) -> None:
    """Give up every capability, for good: an empty bounding set, so that root's exec regains none.

    With `groups`, become user 65534 in those groups alone.
    """
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if groups is not None:
        os.setgroups(groups)
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def raise_loopback() -> None:
    """Switch the loopback of this network namespace on: it comes switched off, but in gVisor, which then refuses."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


class SockFprog(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse_calls(program: bytes) -> None:
    """Put this process and all it becomes under a seccomp filter, an array of ``struct sock_filter``; none if empty."""
    if program:
        whole = SockFprog(len(program) // 8, program)
        check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(whole), 0, 0), "seccomp")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags))
    check(_libc.mount(*arguments, options.encode() if options else None), f"mount {target}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2)."""
    check(_libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], new.encode(), old.encode()), "pivot_root")


def check(result: int, what: str) -> None:
    """Raise the last error of the C library where `result` is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
