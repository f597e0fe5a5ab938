"""The system calls a confined guest may not make, as a classic BPF program for seccomp.

What is refused ends in EPERM: other processes' memory, mounts and namespaces, the kernel's modules, keys, tracing and
clocks, sockets of every family but UNIX ones (where the guest has a loopback of its own, internet and netlink ones
too: its network namespace holds nothing else). ``clone3`` ends in ENOSYS, as its flags lie in memory that no filter can
read: the C library then takes ``clone``, whose flags are looked at. Device ioctls, and with them every GPU driver, are
left alone. Numbers: Linux 6.12, ``arch/x86/entry/syscalls/syscall_64.tbl`` and ``scripts/syscall.tbl`` (arm64).
"""

from __future__ import annotations

import errno
import os
import socket
import struct

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the table below, and the kernel's AUDIT_ARCH number."""
_TABLE = """
ptrace 101 117            process_vm_readv 310 270  process_vm_writev 311 271  kcmp 312 272
pidfd_getfd 438 438       process_madvise 440 440   perf_event_open 298 241    bpf 321 280
userfaultfd 323 282       io_uring_setup 425 425    io_uring_enter 426 426     io_uring_register 427 427
add_key 248 217           request_key 249 218       keyctl 250 219             open_by_handle_at 304 265
mount 165 40              umount2 166 39            pivot_root 155 41          chroot 161 51
open_tree 428 428         move_mount 429 429        fsopen 430 430             fsconfig 431 431
fsmount 432 432           fspick 433 433            mount_setattr 442 442      fanotify_init 300 262
unshare 272 97            setns 308 268             lookup_dcookie 212 18      personality 135 92
init_module 175 105       finit_module 313 273      delete_module 176 106      syslog 103 116
kexec_load 246 104        kexec_file_load 320 294   reboot 169 142             acct 163 89
swapon 167 224            swapoff 168 225           quotactl 179 60            quotactl_fd 443 443
settimeofday 164 170      clock_settime 227 112     clock_adjtime 305 266      adjtimex 159 171
sethostname 170 161       setdomainname 171 162     iopl 172 -                 ioperm 173 -
modify_ldt 154 -          uselib 134 -              sysfs 139 -                ustat 136 -
"""
"""Name, number on x86_64, number on aarch64."""
_LOOPBACK = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""What gloo, NCCL and torch's rendezvous open; by netlink the C library lists interfaces."""
_SOCKET, _CLONE, _CLONE3 = (41, 198), (56, 220), (435, 435)
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWUSER, NEWPID, NEWNET, NEWIPC, NEWUTS, NEWCGROUP and NEWNS."""
_X32 = 0x40000000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_MISSING = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)


def known() -> bool:
    """Whether there is a filter for this machine's architecture."""
    return os.uname().machine in _ARCHITECTURES


def numbers(machine: str) -> dict[str, int]:
    """The refused calls of an architecture, by name."""
    column, _ = _ARCHITECTURES[machine]
    words = _TABLE.split()
    return {name: int(number) for name, number in zip(words[::3], words[1 + column :: 3], strict=True) if number != "-"}


def filter_program(machine: str = "", loopback: bool = False) -> bytes:
    """The filter as an array of ``struct sock_filter``, empty for an architecture it is not written for."""
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    column, audit = _ARCHITECTURES[machine]
    # A jump's two distances count the instructions to leave out where the test holds, and where it does not.
    program = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, audit), _REFUSE, (_LOAD, 0, 0, _NUMBER_AT)]
    program += [(_AT_LEAST, 0, 1, _X32), _REFUSE] if column == 0 else []
    for number in numbers(machine).values():
        program += [(_EQUAL, 0, 1, number), _REFUSE]
    program += [(_EQUAL, 0, 1, _CLONE3[column]), _MISSING]
    argument = (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
    program += [(_EQUAL, 0, 4, _CLONE[column]), argument, (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _REFUSE, _ALLOW]
    families = (socket.AF_UNIX, *(_LOOPBACK if loopback else ()))
    allowed = [(_EQUAL, len(families) - index, 0, family) for index, family in enumerate(families)]
    program += [(_EQUAL, 0, 3 + len(families), _SOCKET[column]), argument, *allowed, _REFUSE, _ALLOW]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in [*program, _ALLOW])


def filter_file(loopback: bool = False) -> int:
    """A descriptor that reads as the filter, for a program that takes it so."""
    fd = os.memfd_create("filter")
    os.write(fd, filter_program(loopback=loopback))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
