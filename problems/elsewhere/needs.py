"""What a foreign file imports that is not installed here. Looked up, never imported."""

from __future__ import annotations

import ast
import importlib.util


def missing(tree: ast.Module, own: set[str]) -> str:
    """Why it cannot run here: the packages imported at its top that are neither installed nor among `own` modules."""
    modules = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    tops = sorted({name.split(".")[0] for name in modules} - own)
    lacking = [name for name in tops if importlib.util.find_spec(name) is None]
    return f"its reference needs {', '.join(lacking)}, which is not installed here" if lacking else ""
