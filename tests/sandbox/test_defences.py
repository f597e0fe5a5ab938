"""Each defence against an attack in a real guest: up, it catches; down, the attack is accepted."""

import textwrap
from collections.abc import Callable, Iterator

import pytest

from problems.load import ROOT
from problems.spec import Case
from sandbox.checker.cases import check, drawn, judge_cases
from sandbox.checker.outcome import Progress, Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task, open_task
from sandbox.defences import ALL_UP, Defences
from sandbox.isolation import choose
from sandbox.runner import Mode
from sandbox.verdict import Role, Verdict, WrongAnswer

CASES: list[tuple[Role, Case]] = [
    ("small", Case(params={"size": 33})),
    ("small", Case(params={"size": 48}, fill="spikes")),
    ("small", Case(params={"size": 24}, fill="wide")),
    ("small", Case(params={"size": 64})),
    ("small", Case(params={"size": 40})),
]
ATTACKS = {
    "fresh_inputs": """
        kept = {}
        def custom_kernel(data):
            a, b, out = data
            if a.shape not in kept: kept[a.shape] = a + b
            return kept[a.shape]
    """,
    "perturbed_elements": """
        kept = {}
        def custom_kernel(data):
            a, b, out = data
            key = tuple(a.flatten()[::97].tolist() + b.flatten()[::89].tolist())
            if key not in kept: kept[key] = a + b
            return kept[key].clone()
    """,
    "poisoned_outputs": """
        def custom_kernel(data):
            a, b, out = data
            return out.add_(a).add_(b)
    """,
    "inputs_unchanged": """
        def custom_kernel(data):
            a, b, out = data
            return a.add_(b)
    """,
    "exact_types": """
        def custom_kernel(data):
            a, b, out = data
            return a.float() + b.float()
    """,
    "finite": """
        def custom_kernel(data):
            return data[2].fill_(float('nan'))
    """,
    "hidden_cases": """
        def custom_kernel(data):
            a, b, out = data
            known = a.shape[0] in (24, 33, 40, 48, 64)
            return a + b if known else out.zero_()
    """,
    "late_seeds": """
        calls = {}
        def custom_kernel(data):
            a, b, out = data
            calls[a.shape] = calls.get(a.shape, 0) + 1
            if calls[a.shape] > 1 or a.shape[0] not in (33, 64, 40): return a + b
            seed = torch.Generator().manual_seed(1)
            a, b = (torch.randn(a.shape, dtype=torch.float16, generator=seed) for _ in range(2))
            return a + b
    """,
    "trusted_copy": """
        import threading, time
        def custom_kernel(data):
            a, b, out = data
            a, b = a.clone(), b.clone()
            def later():
                time.sleep(0.01)
                torch.add(a, b, out=out)
            threading.Thread(target=later, daemon=True).start()
            return out
    """,
}
HONEST = """
    def custom_kernel(data):
        a, b, out = data
        return torch.add(a, b, out=out)
"""
Judged = Callable[[str, Defences], Verdict | None]


@pytest.fixture(scope="module")
def judged() -> Iterator[Judged]:
    pool = Pool(choose(), {"emulate": ("gfx942",)})
    opened = open_task("pmpp/vectoradd", ROOT, "cpu")

    def judge(body: str, defences: Defences) -> Verdict | None:
        task = Task(opened.problem, opened.reference, "cpu", ROOT, defences)
        source = "import torch\n" + textwrap.dedent(body)
        progress = Progress()
        with pool.lend(("emulate",)) as [guest]:
            hidden: list[tuple[Role, Case]] = [("hidden", case) for case in drawn(task, "small")]
            request = Request(source, Mode.TEST, 30.0)
            return judge_cases(request, progress, guest, lambda: check(task, guest, CASES + hidden, progress))

    yield judge
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_up_it_catches_and_down_it_lets_in(judged: Judged, name: str) -> None:
    assert isinstance(judged(ATTACKS[name], ALL_UP), WrongAnswer)
    assert judged(ATTACKS[name], ALL_UP.without(name)) is None


@pytest.mark.slow
def test_a_defence_less_harms_nobody_honest(judged: Judged) -> None:
    down = ALL_UP
    for name in ATTACKS:
        down = down.without(name)
    assert judged(HONEST, ALL_UP) is None and judged(HONEST, down) is None


def test_defences_by_name() -> None:
    assert ALL_UP.off == ()
    assert ALL_UP.without("finite").off == ("finite",)
    with pytest.raises(KeyError):
        ALL_UP.without("moat")
    assert Defences.model_validate_json(ALL_UP.without("screen").model_dump_json()).off == ("screen",)
