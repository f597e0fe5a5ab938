"""``python -m sandbox.images > root.tar``: the CPU image's root for this machine, for ``docker import`` or an ADD."""

from __future__ import annotations

import sys

from sandbox.images.root import root_archive
from sandbox.isolation.docker import MEETING
from sandbox.isolation.view import view

if __name__ == "__main__":
    sys.stdout.buffer.write(root_archive(view(gpu=False), (MEETING,)))
