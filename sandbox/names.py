"""What names in a source stand for: imports, and plain aliases of what was imported."""

from __future__ import annotations

import ast

_BUILTIN = {"setattr", "open", "exec", "eval", "id", "getattr"}


class Names:
    """The dotted paths behind a module's names, wherever in it they are bound. A name bound twice keeps the last."""

    def __init__(self, tree: ast.Module) -> None:
        self._paths: dict[str, str] = {name: name for name in _BUILTIN}
        self._modules: set[str] = set()
        for node in ast.walk(tree):
            self._import(node)
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Name() as value):
                    if path := self.path(value):
                        self._paths[name] = path

    def path(self, node: ast.expr) -> str:
        """``torch.cuda.Event`` for an expression that stands for it; empty for one that stands for nothing imported."""
        match node:
            case ast.Name(id=name):
                return self._paths.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                owner = self.path(value)
                return f"{owner}.{attr}" if owner else ""
            case ast.Call(func=ast.Name(id="getattr"), args=[owner_node, name_node, *_]):
                owner, attr = self.path(owner_node), text_of(name_node)
                return f"{owner}.{attr}" if owner and attr else ""
            case ast.Call(func=ast.Name(id="__import__"), args=[name_node, *_]):
                return text_of(name_node).split(".")[0]
            case _:
                return ""

    def is_module(self, path: str) -> bool:
        """Whether `path` was imported as a module, or is part of one by its first name."""
        return path in self._modules

    def _import(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.split(".")[0]
                    self._paths[name] = alias.name if alias.asname else name
                    self._modules |= {alias.name, alias.name.split(".")[0]}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                for alias in aliases:
                    self._paths[alias.asname or alias.name] = f"{module}.{alias.name}"
                self._modules.add(module)


def text_of(node: ast.AST) -> str:
    """The text of a string constant, or of constants added or joined; empty for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = text_of(left), text_of(right)
            return one + other if one and other else ""
        case ast.Call(func=ast.Attribute(value=glue, attr="join"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]):
            texts = [text_of(part) for part in parts]
            separator = glue.value if isinstance(glue, ast.Constant) and isinstance(glue.value, str) else ""
            return separator.join(texts) if all(texts) else ""
        case _:
            return ""
