"""Suspicious constructs in a submission, by its syntax tree: what each could be there for, and on which line.

A finding convicts only where the construct has no honest use in a kernel: it replaces the judge's clock or comparison,
rewrites other code, or reaches for the judge's process. Everything else advises. Text is no construct: what a comment
or a docstring says is never found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.names import Names, text_of
from sandbox.verdict import Finding

CLOCKS = ("time.", "torch.cuda.Event", "torch.Event", "torch.cuda.synchronize", "torch.cuda.current_stream")
COMPARISONS = (
    *("torch.allclose", "torch.isclose", "torch.equal", "torch.testing.", "torch.Tensor.__eq__", "torch.Tensor.equal"),
    *("numpy.allclose", "numpy.testing.", "numpy.median", "numpy.mean", "statistics."),
)
SETTINGS = ("torch.backends", "torch._inductor", "torch._dynamo", "triton.knobs", "torch.set_", "torch.compiler")
"""Modules whose attributes are there to be set."""
_CALLS = {
    "sys._getframe": "looks at its callers' frames",
    "inspect.currentframe": "looks at its callers' frames",
    "inspect.stack": "looks at its callers' frames",
    "gc.get_objects": "looks through all objects of the process",
    "gc.get_referrers": "looks through all objects of the process",
    "os.dup2": "redirects a descriptor",
    "os.fork": "starts a process of its own",
    "os.setsid": "leaves its process group",
    "os._exit": "ends the process early",
    "atexit.register": "leaves work for the end of the process",
    "ctypes.memmove": "writes memory by address",
    "ctypes.memset": "writes memory by address",
    "ctypes.string_at": "reads memory by address",
    "ctypes.CDLL": "calls C libraries past Python",
    "socket.socket": "opens a socket",
    "socket.create_connection": "opens a connection",
    "urllib.request.urlopen": "opens a connection",
    "subprocess.run": "starts programs",
    "subprocess.Popen": "starts programs",
    "os.system": "starts programs",
    "torch.load": "reads tensors from a file: results of another run?",
    "numpy.load": "reads arrays from a file: results of another run?",
    "pickle.loads": "unpickles code",
    "torch.Tensor._make_subclass": "makes a tensor of another type, which may compute later than it seems",
    "torch.cuda.is_current_stream_capturing": "may work in a captured call alone",
}
_ATTRIBUTES = {
    "as_subclass": "makes a tensor of another type, which may compute later than it seems",
    "_make_subclass": "makes a tensor of another type, which may compute later than it seems",
    "ptrace": "traces a process",
    "process_vm_readv": "reads another process's memory",
    "process_vm_writev": "writes another process's memory",
    "mprotect": "changes the protection of code",
}
_REWRITES = {"__code__": "replaces a function's code", "__class__": "replaces an object's type"}
_FRAMES = ("f_globals", "f_locals", "__globals__")
_JOINS = {"Thread": "join", "Process": "join"}
_STREAM_JOINS = {"wait_stream", "wait_event", "synchronize", "record_event"}


def find(tree: ast.Module) -> tuple[Finding, ...]:
    """All findings, by line."""
    names = Names(tree)
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = [finding for node in ast.walk(tree) for finding in _look(node, names, attributes)]
    return tuple(sorted(set(found), key=lambda finding: (finding.line, finding.rule)))


def _look(node: ast.AST, names: Names, attributes: set[str]) -> Iterator[Finding]:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _stored(target, names)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield from _stored(target, names)
        case ast.Call():
            yield from _called(node, names, attributes)
        case ast.Subscript(value=value, slice=key):
            yield from _looked_up(node, value, key, names)
        case ast.ClassDef(bases=bases):
            if any(names.path(base) == "torch.Tensor" for base in bases):
                yield _advice(node, "tensor-subclass", "subclasses torch.Tensor: a result of that type is refused")
        case ast.FunctionDef(name="__reduce__" | "__reduce_ex__"):
            yield _advice(node, "pickle", "says how it is unpickled; nothing here is ever unpickled")
        case ast.ImportFrom(module="reference"):
            yield _advice(node, "reference", "imports the board's reference.py, which is not there")
        case ast.Attribute(attr=attr) if attr in _ATTRIBUTES:
            yield _advice(node, attr.replace("_", "-").strip("-"), _ATTRIBUTES[attr])


def _stored(target: ast.expr, names: Names) -> Iterator[Finding]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _stored(part, names)
        case ast.Attribute(attr=attr) if attr in _REWRITES:
            yield _finding(target, f"sets-{attr.strip('_')}", _REWRITES[attr], convicts=attr == "__code__")
        case ast.Attribute():
            yield from _replaced(target, names.path(target), names)
        case ast.Subscript(value=ast.Attribute(attr=attr)) if attr in _FRAMES:
            yield _finding(target, "writes-globals", f"writes into {attr} of code that is not its own", convicts=True)
        case ast.Subscript(value=value) if names.path(value) == "sys.modules":
            yield _advice(target, "sys-modules", "puts a module of its own in place of another")


def _replaced(node: ast.AST, path: str, names: Names) -> Iterator[Finding]:
    """Something assigned to the dotted `path` of an imported module."""
    if _within(path, CLOCKS):
        yield _finding(node, "patches-clock", f"replaces {path}: a kernel has no use for another clock", convicts=True)
    elif _within(path, COMPARISONS):
        message = f"replaces {path}: a kernel has no use for another comparison"
        yield _finding(node, "patches-comparison", message, convicts=True)
    elif path and names.is_module(path.rpartition(".")[0]) and not _within(path, SETTINGS):
        yield _advice(node, "patches-module", f"replaces {path} for everyone in the process")


def _called(node: ast.Call, names: Names, attributes: set[str]) -> Iterator[Finding]:
    path = names.path(node.func)
    if path in _CALLS:
        yield _advice(node, path.replace(".", "-").replace("_", ""), f"{path} {_CALLS[path]}")
    match path, node.args:
        case "setattr", [owner, name, *_]:
            attr, whole = text_of(name), names.path(owner)
            if attr in _REWRITES:
                yield _finding(node, f"sets-{attr.strip('_')}", _REWRITES[attr], convicts=attr == "__code__")
            elif attr and whole:
                yield from _replaced(node, f"{whole}.{attr}", names)
        case (("torch.library.Library" | "torch.library.impl"), [name, *_]) if text_of(name).split("::")[0] == "aten":
            yield _finding(node, "patches-aten", "replaces torch's own operators", convicts=True)
        case (("open" | "os.open" | "pathlib.Path" | "io.open"), [name, *_]):
            yield from _opened(node, text_of(name))
        case (("os.kill" | "os.killpg"), [target, *_]) if _mentions(target, "getppid"):
            yield _finding(node, "signals-judge", "signals the process that started it", convicts=True)
        case (("exec" | "eval"), [code, *_]) if not text_of(code):
            yield _advice(node, "hidden-code", "runs code that is made while it runs, so that it cannot be read here")
        case (("os.getenv" | "os.environ.get" | "os.environ.pop"), [name, *_]) if text_of(name) == "POPCORN_FD":
            yield _finding(node, "popcorn-fd", "reads where the board's verdict is written to", convicts=True)
    yield from _unjoined(node, path, attributes)


def _unjoined(node: ast.Call, path: str, attributes: set[str]) -> Iterator[Finding]:
    kind = path.rpartition(".")[2]
    if path.startswith(("threading.", "multiprocessing.")) and _JOINS.get(kind, "join") not in attributes:
        yield _advice(node, "unjoined", f"{path} is never joined: work after the return is not counted as done")
    if path in ("torch.cuda.Stream", "torch.Stream") and not _STREAM_JOINS & attributes:
        yield _advice(node, "unjoined-stream", "a stream is never joined: work after the return is not counted as done")


def _opened(node: ast.AST, path: str) -> Iterator[Finding]:
    if path.startswith("/proc/") and path.endswith("/mem"):
        yield _finding(node, "process-memory", f"opens {path}, a process's memory", convicts=True)
    elif path.startswith("/proc/") and path.rpartition("/")[2] in ("maps", "environ", "cmdline"):
        yield _advice(node, "proc", f"opens {path}")


def _looked_up(node: ast.AST, value: ast.expr, key: ast.expr, names: Names) -> Iterator[Finding]:
    if names.path(value) == "os.environ" and text_of(key) == "POPCORN_FD":
        yield _finding(node, "popcorn-fd", "reads where the board's verdict is written to", convicts=True)
    if _mentions(key, "data_ptr"):
        yield _advice(node, "pointer-cache", "kept by pointer: plans may be, results may not")
    if isinstance(key, ast.Call) and names.path(key.func) == "id":
        yield _advice(node, "identity-cache", "kept by identity: plans may be, results may not")


def _mentions(node: ast.AST, attribute: str) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == attribute for part in ast.walk(node))


def _within(path: str, owners: tuple[str, ...]) -> bool:
    """Whether `path` is one of `owners`, or below it."""
    return any(path == owner.rstrip(".") or path.startswith(owner.rstrip(".") + ".") for owner in owners if path)


def _advice(node: ast.AST, rule: str, message: str) -> Finding:
    return _finding(node, rule, message, convicts=False)


def _finding(node: ast.AST, rule: str, message: str, convicts: bool) -> Finding:
    return Finding(line=getattr(node, "lineno", 1), rule=rule, message=message, convicts=convicts)
