"""What is a submission at all."""

import pytest

from problems.load import load
from sandbox.candidate import Candidate
from sandbox.defences import Defences
from sandbox.screen import MAX_BYTES, MAX_FINDINGS, advise, refuse, screen, suspicions
from sandbox.verdict import Machine

VECTORADD = load("pmpp/vectoradd")
FAKE = Machine(
    kind="fake", chip="none", arch="none", driver="none", runtime="none", torch="0", triton="0", python="3", harness="0"
)


def screened(source: str) -> tuple[str, int] | None:
    rejected = screen(VECTORADD, Candidate(source=source))
    if rejected is None:
        return None
    assert rejected.findings[0].convicts
    return rejected.findings[0].rule, rejected.findings[0].line


@pytest.mark.parametrize(
    "source",
    [
        "def custom_kernel(data):\n    return data\n",
        "custom_kernel = print",
        "custom_kernel: object = print",
        "from math import sin as custom_kernel",
        "try:\n    import triton\n    def custom_kernel(data): ...\nexcept ImportError:\n    pass\n",
        "if True:\n    custom_kernel = 1\n",
        "class custom_kernel: ...",
        "#!POPCORN leaderboard vectoradd_v2\n#!POPCORN gpus H100\ndef custom_kernel(data): ...",
        "#!POPCORN leaderboard vectoradd\ndef custom_kernel(data): ...",
        "#!popcorn leaderboard PMPP/vectoradd\ndef custom_kernel(data): ...",
        "def custom_kernel(data): return '\\d' is 1",
        "# läßt Umlaute zu ✓\ndef custom_kernel(data): ...",
    ],
)
def test_submissions_pass(source: str) -> None:
    assert screened(source) is None


@pytest.mark.parametrize(
    ("source", "rule", "line"),
    [
        ("", "empty", 1),
        (" \n\t\n", "empty", 1),
        ("x = 1\ndef custom_kernel(data:\n    pass", "syntax", 2),
        ("def other(data): ...", "entry-point", 1),
        ("def outer():\n    def custom_kernel(data): ...\n", "entry-point", 1),
        ("print(custom_kernel)", "entry-point", 1),
        ("x = 1\n#!POPCORN leaderboard matmul_v2\ndef custom_kernel(data): ...", "leaderboard", 2),
        ("def custom_kernel(data): ...\n\0", "encoding", 2),
        ("def custom_kernel(data): return '\ud800'", "encoding", 1),
        ("def custom_kernel(data): ...\n#" + "x" * MAX_BYTES, "size", 1),
        ("(" * 5000 + ")" * 5000, "syntax", 1),
        ("-" * 100_000 + "1", "syntax", 1),
    ],
)
def test_what_is_no_submission_is_refused_with_its_line(source: str, rule: str, line: int) -> None:
    assert screened(source) == (rule, line)


def test_the_word_stream_is_advice() -> None:
    candidate = Candidate(source="# one Stream\ndef custom_kernel(data): ...\n")
    assert screen(VECTORADD, candidate) is None
    findings = advise(candidate)
    assert [(finding.line, finding.convicts) for finding in findings] == [(1, False)]
    assert "stream" in findings[0].message


KERNEL = "\ndef custom_kernel(data): ...\n"


@pytest.mark.parametrize(
    ("source", "rule", "line"),
    [
        ("import torch\ntorch.cuda.Event = object", "patches-clock", 2),
        ("import torch.cuda as c\nc.Event.elapsed_time = None", "patches-clock", 2),
        ("from torch.cuda import Event\nEvent.record = None", "patches-clock", 2),
        ("import torch\nE = torch.cuda.Event\nsetattr(E, 'elapsed' + '_time', None)", "patches-clock", 3),
        ("import torch\nsetattr(torch.cuda, 'synchronize', print)", "patches-clock", 2),
        ("import time\na, time.perf_counter = 1, None", "patches-clock", 2),
        ("import time as t\nt.time_ns = None", "patches-clock", 2),
        ("import torch\ntorch.allclose = lambda *a: True", "patches-comparison", 2),
        ("import numpy as np\nnp.testing.assert_allclose = print", "patches-comparison", 2),
        ("import statistics\nstatistics.mean = min", "patches-comparison", 2),
        ("import sys\nsys._getframe(1).f_globals['check'] = print", "writes-globals", 2),
        ("def f(): ...\nf.__code__ = (lambda: 1).__code__", "sets-code", 2),
        ("import torch\ntorch.library.Library('aten', 'IMPL')", "patches-aten", 2),
        ("open('/proc/self/mem', 'r+b')", "process-memory", 1),
        ("import os\nos.kill(os.getppid(), 9)", "signals-judge", 2),
        ("import os\nfd = os.environ['POPCORN_FD']", "popcorn-fd", 2),
        ("import os\nfd = os.getenv('POPCORN' + '_FD')", "popcorn-fd", 2),
    ],
)
def test_what_has_no_honest_use_convicts_unless_the_screen_only_advises(source: str, rule: str, line: int) -> None:
    candidate = Candidate(source=source + KERNEL)
    rejected = screen(VECTORADD, candidate)
    assert rejected is not None and rejected.reason.startswith(f"line {line}: ")
    assert (rule, line, True) in {(found.rule, found.line, found.convicts) for found in rejected.findings}
    assert screen(VECTORADD, candidate, convict=False) is None
    machine = FAKE
    assert refuse(VECTORADD, candidate, machine) is not None
    assert refuse(VECTORADD, candidate, machine, Defences(screen=False)) is None
    assert rule in {found.rule for found in advise(candidate)}


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("import gc\ngc.get_objects()", "gc-getobjects"),
        ("import sys\nsys._getframe()", "sys-getframe"),
        ("import sys\nsys.modules['torch'] = None", "sys-modules"),
        ("import os\nos.dup2(1, 2)", "os-dup2"),
        ("import threading\nthreading.Thread(target=print).start()", "unjoined"),
        ("import torch\ns = torch.cuda.Stream()", "unjoined-stream"),
        ("import torch\nclass Lazy(torch.Tensor): ...", "tensor-subclass"),
        ("class A:\n    def __reduce__(self): ...", "pickle"),
        ("kept = {}\ndef f(x): return kept[x.data_ptr()]", "pointer-cache"),
        ("kept = {}\ndef f(x): return kept[id(x)]", "identity-cache"),
        ("import base64\nexec(base64.b64decode(b''))", "hidden-code"),
        ("import ctypes\nctypes.memmove(1, 2, 3)", "ctypes-memmove"),
        ("import torch\ntorch.empty = torch.zeros", "patches-module"),
        ("from reference import ref_kernel", "reference"),
    ],
)
def test_what_may_be_honest_is_advice(source: str, rule: str) -> None:
    candidate = Candidate(source=source + KERNEL)
    assert screen(VECTORADD, candidate) is None
    assert rule in {found.rule for found in advise(candidate)}


HONEST = """
import os, threading, time
import torch, triton
from torch.utils.cpp_extension import load_inline
from task import input_t, output_t
torch.backends.cuda.matmul.allow_tf32 = True
torch._inductor.config.max_autotune = True
plans, workspaces = {}, {}
# time.perf_counter = fast; torch.cuda.Event = mine; POPCORN_FD, f_globals, __code__, /proc/self/mem
class Timer(torch.cuda.Event):
    'Cheats nobody: does not touch torch.allclose, gc.get_objects() or sys._getframe().'
@torch.compile
def fused(a): return a + 1
@triton.autotune(configs=[], key=['n'])
def tuned(n): ...
def custom_kernel(data):
    x, = data
    key = tuple(x.shape)
    plans.setdefault(key, torch.empty(1))
    workspaces[key] = torch.empty(4)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    started = time.perf_counter()
    worker = threading.Thread(target=print); worker.start(); worker.join()
    print('PASS', os.environ.get('HOME'), time.perf_counter() - started)
    return x
"""


def test_honest_constructs_and_scary_words_find_nothing() -> None:
    assert suspicions(Candidate(source=HONEST)) == ()


def test_findings_are_few_and_deep_sources_are_read_or_left() -> None:
    many = "import torch\n" + "torch.cuda.Event = 1\n" * 500 + "x = " + "+".join(["1"] * 900) + KERNEL
    rejected = screen(VECTORADD, Candidate(source=many))
    assert rejected is not None and len(rejected.findings) <= MAX_FINDINGS
