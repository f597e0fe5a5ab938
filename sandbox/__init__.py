"""Turns a candidate into a verdict, safely. The only room that starts processes.

Control plane (no torch): `candidate`, `verdict`, `runner`, `screen`, `isa`, `estimate`.
Trusted program (torch): `checker/`, which holds references, seeds, expected outputs and the clock.
Untrusted program (torch, triton): `guest/`, which runs beside the candidate and decides nothing.
"""
