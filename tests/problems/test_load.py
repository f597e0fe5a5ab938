import random
import shutil
from pathlib import Path

import pytest

from problems import ProblemError, hidden_cases, load, names, work
from problems.load import ROOT, content_sha256, folder
from problems.spec import Case
from tests.problems.references import PROBLEMS


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A folder of problems of one's own, to break."""
    for name in PROBLEMS:
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def edit(root: Path, name: str, old: str, new: str, file: str = "problem.toml") -> None:
    path = root / name / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_names_are_folders() -> None:
    assert set(PROBLEMS) <= set(names())
    assert all((folder(load(name)) / "README.md").is_file() for name in names())


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("amd/fp8-mm", "amd/fp8-mm"),
        ("amd-fp8-mm", "amd/fp8-mm"),
        ("fp8_mm", "amd/fp8-mm"),
        ("AMD/FP8-MM/", "amd/fp8-mm"),
        ("pmpp_v2/matmul_py", "pmpp/matmul"),
        ("matmul_v2", "pmpp/matmul"),
        ("matmul", "pmpp/matmul"),
        ("pmpp_v2/vectoradd_py", "pmpp/vectoradd"),
        ("vectoradd_v2", "pmpp/vectoradd"),
        (" vectoradd ", "pmpp/vectoradd"),
    ],
)
def test_upstream_names_work(alias: str, name: str) -> None:
    assert load(alias).name == name


@pytest.mark.parametrize(
    ("wrong", "near"), [("matmull", "pmpp/matmul"), ("fp8mm", "amd/fp8-mm"), ("pmpp/vecadd", "add")]
)
def test_an_unknown_name_gets_near_matches(wrong: str, near: str) -> None:
    with pytest.raises(ProblemError, match=f"{wrong}.*did you mean.*{near}"):
        load(wrong)


def test_a_hopeless_name_gets_the_list() -> None:
    with pytest.raises(ProblemError, match=r"there are amd/.*amd/fp8-mm, .*pmpp/vectoradd"):
        load("zzzzzz")


def test_an_alias_of_two_problems_is_refused(copies: Path) -> None:
    edit(copies, "pmpp/matmul", '"matmul_py"', '"fp8-mm"')
    with pytest.raises(ProblemError, match="more than one problem: amd/fp8-mm, pmpp/matmul"):
        load("fp8-mm", copies)


BROKEN = [
    ("tests = [", "tests = ", r"problem\.toml: cannot be read as TOML: .*line \d+.*correct that line"),
    ('board = "matmul_v2"\n', "", r"problem\.toml: board: field required; add it"),
    ("writable", "writeable", r"writeable: .*not permitted; remove it, or correct its spelling \(writable\?\)"),
    ("rtol = 0.0009765625", 'rtol = "tight"', r"tolerance\.rtol: .*valid number.*; correct the value"),
    ('clock = "event"', 'clock = "sundial"', r"board_timing\.clock: .*'host' or 'event'"),
    ("m = 64, n = 64, k = 64", "m = 64, n = 64", r"tests\.0: its keys are not k, m, n"),
    ("m = 64, n = 64, k = 64", 'm = "big", n = 64, k = 64', r"tests\.0: .*breaks the rule of cases\.py"),
    ("m = 64, n = 64, k = 64, seed", "m = 64, n = 64, k = 65, seed", r"tests\.0: .*breaks the rule of cases\.py"),
    ('fill = "normal"', 'fill = "norml"', r"small\.4: unknown fill 'norml'; use one of published, normal"),
    ('fp16 = "2*m*n*k"', 'fp16 = "2*m*n*q"', r"unknown name 'q'.*correct flops or bytes"),
    ('fp16 = "2*m*n*k"', 'fp17 = "2*m*n*k"', r"flops\.fp17"),
    ('title = "', 'name = "x"\ntitle = "', "name: the folder is the name; remove it"),
]


@pytest.mark.parametrize(
    ("old", "new", "complaint"), BROKEN, ids=[new.strip()[:30] or "removed" for _, new, _ in BROKEN]
)
def test_a_broken_problem_file_names_file_field_and_cure(copies: Path, old: str, new: str, complaint: str) -> None:
    edit(copies, "pmpp/matmul", old, new)
    with pytest.raises(ProblemError, match=complaint) as caught:
        load("pmpp/matmul", copies)
    assert "pmpp/matmul/problem.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert load("pmpp/vectoradd", copies).name == "pmpp/vectoradd"


@pytest.mark.parametrize("field", ["tests", "benchmarks", "small"])
def test_a_problem_without_cases_is_refused(copies: Path, field: str) -> None:
    edit(copies, "pmpp/vectoradd", f"\n{field} = [", f"\n{field} = []\nother = [")
    with pytest.raises(ProblemError, match=f"{field}: must be a list of at least one case"):
        load("pmpp/vectoradd", copies)


@pytest.mark.parametrize("file", ["cases.py", "reference.py"])
def test_a_missing_file_is_named(copies: Path, file: str) -> None:
    (copies / "pmpp/matmul" / file).unlink()
    with pytest.raises(ProblemError, match=f"pmpp/matmul/{file}: missing"):
        load("pmpp/matmul", copies)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("import random", "import rndom", "does not import: ModuleNotFoundError.*correct the file"),
        ("FILLS = (", "FILLS = ((", "does not import: SyntaxError"),
        ("def hidden", "def hiden", "has no hidden; define FILLS, fits"),
    ],
)
def test_a_broken_case_file_is_named(copies: Path, old: str, new: str, complaint: str) -> None:
    edit(copies, "pmpp/matmul", old, new, "cases.py")
    with pytest.raises(ProblemError, match=f"pmpp/matmul/cases.py: {complaint}"):
        load("pmpp/matmul", copies)


def test_hidden_cases_that_cannot_be_drawn_name_the_file(copies: Path) -> None:
    edit(copies, "pmpp/matmul", "near(rng)", "near()", "cases.py")
    with pytest.raises(ProblemError, match=r"pmpp/matmul/cases\.py: hidden: TypeError"):
        hidden_cases(load("pmpp/matmul", copies), random.Random(1), "small", copies)


def test_a_file_that_is_not_text_is_named(copies: Path) -> None:
    (copies / "pmpp/matmul/problem.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match=r"pmpp/matmul/problem.toml: cannot be read"):
        load("pmpp/matmul", copies)


def test_published_cases_are_all_there() -> None:
    counts = {name: (len(load(name).tests), len(load(name).benchmarks)) for name in PROBLEMS}
    assert counts == {"amd/fp8-mm": (11, 18), "pmpp/matmul": (5, 8), "pmpp/vectoradd": (5, 5)}
    assert load("fp8-mm").tests[0] == Case(params={"m": 64, "n": 64, "k": 128}, seed=6635)
    assert load("matmul").ranked()[0].spec() == "m: 4096; n: 5120; k: 4096"
    assert len(load("fp8-mm").ranked()) == 18


def test_baselines_have_sources() -> None:
    for name in PROBLEMS:
        baselines = load(name).baselines
        assert {"human", "sol"} <= {baseline.kind for baseline in baselines}
        assert all(baseline.source and baseline.metric and baseline.time_us > 0 for baseline in baselines)
    published = {case.spec() for case in load("fp8-mm").benchmarks}
    by_case = [Case(params=b.case).spec() for b in load("fp8-mm").baselines if b.kind == "sol" and b.case]
    assert sorted(by_case) == sorted(published)


def test_work_by_hand() -> None:
    fp8 = work(load("fp8-mm"), Case(params={"m": 1024, "n": 576, "k": 7168}))
    assert fp8.flops == {"fp8": 2 * 1024 * 576 * 7168}
    # 576 columns are 4.5 scale blocks, so 5; 7168 are 56.
    assert fp8.bytes == 1024 * 7168 + 576 * 7168 + 4 * 56 * 1024 + 4 * 56 * 5 + 2 * 1024 * 576
    matmul = work(load("matmul"), Case(params={"m": 4096, "n": 5120, "k": 4096}))
    assert matmul.flops == {"fp16": 171_798_691_840}
    assert matmul.bytes == 2 * (4096 * 4096 + 4096 * 5120 + 4096 * 5120)
    vectoradd = work(load("vectoradd"), Case(params={"size": 16384}))
    assert (vectoradd.flops, vectoradd.bytes) == ({"fp16": 268_435_456}, 1_610_612_736)


def test_work_of_a_case_of_another_problem_says_so() -> None:
    with pytest.raises(ProblemError, match="pmpp/matmul, case 'size: 3': unknown name 'm'"):
        work(load("matmul"), Case(params={"size": 3}))


def test_content_hash_is_over_what_judges(copies: Path) -> None:
    before = {name: content_sha256(load(name, copies), copies) for name in PROBLEMS}
    assert len(set(before.values())) == 3
    (copies / "pmpp/matmul/README.md").write_text("other words")
    assert content_sha256(load("pmpp/matmul", copies), copies) == before["pmpp/matmul"]
    edit(copies, "pmpp/matmul", "rng.choice(SHAPES)", "SHAPES[0]", "cases.py")
    assert content_sha256(load("pmpp/matmul", copies), copies) != before["pmpp/matmul"]
    assert content_sha256(load("amd/fp8-mm", copies), copies) == before["amd/fp8-mm"]


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_hidden_cases_are_drawn_from_the_generator_alone(name: str, size: str) -> None:
    problem = load(name)
    draws = [hidden_cases(problem, random.Random(seed), size) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_hidden_cases_keep_the_rules_and_leave_the_published_sizes(name: str, size: str) -> None:
    problem = load(name)
    published = {case.spec() for case in (*problem.tests, *problem.benchmarks, *problem.small)}
    for seed in range(200):
        cases = hidden_cases(problem, random.Random(seed), size)
        assert 3 <= len(cases) <= 4
        assert [case.fill for case in cases].count("published") == 1
        assert not published & {case.spec() for case in cases}
        for case in cases:
            assert set(case.params) == set(problem.tests[0].params)
            sides = list(case.params.values())
            assert all(isinstance(side, int) and 1 <= side <= (512 if size == "small" else 9000) for side in sides)
            if name == "amd/fp8-mm":
                assert case.params["k"] % 128 == 0
            if name == "pmpp/matmul":
                assert case.params["n"] % 8 == case.params["k"] % 8 == 0
