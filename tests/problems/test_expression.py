import pytest

from problems.expression import ExpressionError, evaluate, holds, variables


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2*m*n*k", 2 * 3 * 5 * 7),
        ("m - n // 2 + k / 2", 3 - 2 + 3.5),
        ("ceildiv(k, m)", 3),
        ("ceildiv(6, m)", 2),
        ("max(m, n, k) - min(m, n)", 4),
        ("2**10 % 1000", 24),
        ("-(m + n)", -8),
        ("k if m > n else n", 5),
        ("flag * 4", 4),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert evaluate(text, {"m": 3, "n": 5, "k": 7, "flag": True}) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("m * n <= 15", True),
        ("m < n < m", False),
        ("m < n <= 5", True),
        ("mode == 'split' and not m > n", True),
        ("mode != 'split' or m == 4", False),
        ("m % 2", True),
    ],
)
def test_conditions(text: str, answer: bool) -> None:
    assert holds(text, {"m": 3, "n": 5, "mode": "split"}) is answer


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("m +", "not an arithmetic expression"),
        ("q * 2", "unknown name 'q'"),
        ("open('x')", "text, not a number"),
        ("ceildiv(m, 0)", "not defined"),
        ("m.real", "not allowed"),
        ("[m]", "not allowed"),
        ("(lambda: m)()", "not allowed"),
        ("__import__(mode)", "text, not a number"),
        ("m @ m", "not allowed"),
        ("m << 2", "not allowed"),
        ("mode + 1", "text, not a number"),
        ("mode < 1", "orders text and a number"),
        ("mode", "text, not a number"),
        ("m is m", "comparison that is not allowed"),
        ("sizes * 2", "is a tuple"),
        ("sum(m)", "lists of one length"),
        ("sum(sizes*three)", "lists of one length"),
        ("sum(sizes, three)", "is a tuple"),
        ("sum(sum(sizes))", "lists of one length"),
        ("1 // 0", "zero"),
        ("9**9**9", "out of bounds"),
        ("10**40", "larger than"),
        ("1e300 * 1e300", "larger than"),
        ("10**64 * 10**64", "larger than"),
        ("(-8) ** 0.5", "out of bounds"),
        ("0 ** -1", r"0 \*\* \(-1\)"),
        ("m+" * 300 + "m", "longer than"),
        ("m+" * 120 + "m", "more than"),
        ("(" * 240 + "m" + ")" * 240, "not an arithmetic expression"),
    ],
)
def test_what_is_not_an_expression_says_why(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text, {"m": 3, "mode": "split", "sizes": (1, 2), "three": (1, 2, 3)})


def test_variables_are_names_and_not_functions() -> None:
    assert variables("max(BLOCK_M, 16) * stages <= lds_bytes") == {"BLOCK_M", "stages", "lds_bytes"}


def test_a_sum_is_over_lists_entry_by_entry() -> None:
    values = {"m": (3, 5), "n": (2, 4), "g": 2}
    assert evaluate("2*sum(m*n + g) + g", values) == 2 * (3 * 2 + 2 + 5 * 4 + 2) + 2
    assert evaluate("sum(ceildiv(m, 2))", values) == 2 + 3
