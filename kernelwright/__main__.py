"""``python -m kernelwright`` is the command ``kernelwright``."""

from kernelwright.main import main

main()
