"""Renders the pages: Jinja2 with autoescape, so that a candidate's text can never become markup."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from evals.visible import visible
from sandbox.trust import ranking_words, words

MICRO = "\N{MICRO SIGN}s"


def render(template: str, **values: object) -> str:
    """The named template of `evals/templates`, rendered; an unknown name in it is an error."""
    return _environment().get_template(template).render(**values)


def time_text(us: float | None, kind: str, chip: str = "") -> str:
    """A time with its kind and chip: ``12.3 us estimated, MI300X``; ``no time`` without one."""
    if us is None or kind == "none":
        return "no time"
    where = f", {chip}" if chip else ""
    return f"{figure(us)} {MICRO} {kind}{where}"


def figure(value: float) -> str:
    """Four significant digits; thousands grouped."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def short(value: float) -> str:
    """A tick's label: ``2k``, ``1.3T``."""
    for power, suffix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{value / power:g}{suffix}"
    return f"{value:g}"


def _shown(value: object) -> object:
    """Plain text is made visible; what a macro has rendered has been already."""
    return visible(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evals"),
        autoescape=select_autoescape(("html", "html.j2"), default=False),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = figure
    environment.filters["short"] = short
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    environment.globals["time_text"] = time_text
    environment.globals["trust_words"] = words
    environment.globals["ranking_words"] = ranking_words
    return environment
