"""The first process of a container: connects to the checker, starts the program, ends when either of them does.

A script of its own with nothing but the standard library: ``first.py SOCKET PROGRAM...``. The kernel kills whatever is
left in a container when its first process ends. So nothing outlives the program, nor a checker that was killed.
"""

import os
import select
import socket
import sys

_REAP_MS = 500


def main(path: str, argv: list[str]) -> int:
    """Run `argv` with the socket as its standard input; its exit status, 128 and the signal's number if killed."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(path)
    # The checker's word that it knows who came: until then there is nothing here to mistake for it.
    if not sock.recv(1):
        return 1
    child = os.fork()
    if child == 0:
        os.dup2(sock.fileno(), 0)
        os.execvp(argv[0], argv)
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLRDHUP | select.POLLHUP)
    poll.register(os.pidfd_open(child), select.POLLIN)
    while not poll.poll(_REAP_MS):
        # Orphans come to the first process; unreaped they would count as processes for ever.
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                return _told(status)
    pid, status = os.waitpid(child, os.WNOHANG)
    return _told(status) if pid == child else 0


def _told(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
