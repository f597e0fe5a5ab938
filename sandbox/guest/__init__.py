"""The program that runs beside the untrusted kernel. It decides nothing; whatever it says may be forged.

Only this folder is visible inside the sandbox, so its modules import each other relatively and nothing else of ours.
"""

SOCKET_FD = 3
"""Where a guest finds the socket to its checker."""
