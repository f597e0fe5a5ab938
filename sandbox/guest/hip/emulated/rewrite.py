"""Turns HIP source into C++ for the emulation: launches, shared variables, inline assembly. Line numbers stay."""

from __future__ import annotations

import re
from collections.abc import Callable

_SKIPPED = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.VERBOSE,
)
_DIGIT_GAP = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_CALLEE = re.compile(r"[\w:]+$")
_KERNEL = re.compile(r"__global__\b[^;{}]*?\b(\w+)\s*\(")
_SHARED = re.compile(
    r"\b(?P<extern>extern\s+)?(?P<before>(?:static\s+|volatile\s+|const\s+|constexpr\s+)*)__shared__\b"
)
_ATTRIBUTE = re.compile(r"(?:alignas|__align__)\s*\(|__attribute__\s*\(\(|\[\[")
_SPACE = re.compile(r"__attribute__\s*\(\(\s*address_space\s*\(\s*\w+\s*\)\s*\)\)")
_AMD = re.compile(r"__attribute__\s*\(\(\s*amdgpu_\w+\s*(?:\([^()]*\)\s*)?\)\)")
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\s*(?:volatile|__volatile__)?\s*\(")
_LABEL = re.compile(r"""\(\s*"(llvm\.amdgcn\.[\w.]+)"\s*\)""")
_GGL = re.compile(r"\bhipLaunchKernelGGL\s*\(")
_UNTYPED = re.compile(
    r"(hipLaunch(?:Cooperative)?Kernel\s*\(\s*)(?:\(\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*\)|"
    r"reinterpret_cast<\s*(?:const\s+)?void\s*\*\s*>)"
)
_WAITS = ("s_nop", "s_setprio", "s_dcache", "s_icache")
_ORDERS = {
    "s_waitcnt": "__kw_wait()",
    "s_barrier": "__builtin_amdgcn_s_barrier()",
    "s_sleep": "__builtin_amdgcn_s_sleep(1)",
    # How the LLVM back end spells acquire and release on gfx942: sc1 of the device, sc0 sc1 of the system.
    "buffer_inv": "__kw_fence(::kw::acquire, {scope})",
    "buffer_wbl2": "__kw_fence(::kw::release, {scope})",
}


class Unsupported(ValueError):
    """Something that this emulation cannot run. The message names it and its line."""


def rewrite(source: str) -> str:
    """C++ for clang out of HIP source; `Unsupported` for what has no counterpart."""
    text = _AMD.sub("", _SPACE.sub("", source))
    text = _UNTYPED.sub(r"\1", text)
    for step in (_plain_launches, _chevrons, _shared_variables, _assembly):
        text = step(text)
    return text


def _blank(text: str) -> str:
    """The same length, with comments and strings as spaces, so that what is found in it stands in code."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _SKIPPED.sub(spaces, _DIGIT_GAP.sub("_", text))


def _closing(blank: str, start: int, opening: str = "(", closing: str = ")") -> int:
    """Index just past the bracket that closes the one at `start`."""
    depth = 0
    for index in range(start, len(blank)):
        if blank[index] == opening:
            depth += 1
        elif blank[index] == closing:
            depth -= 1
            if not depth:
                return index + 1
    raise Unsupported(f"line {blank.count(chr(10), 0, start) + 1}: no closing {closing}")


def split(text: str) -> list[str]:
    """At the commas that no bracket encloses."""
    blank, parts, depth, last = _blank(text), [], 0, 0
    angles = 0
    for index, letter in enumerate(blank):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "<" and index and (blank[index - 1].isalnum() or blank[index - 1] == "_"):
            angles += _is_template(blank, index)
        elif letter == ">" and angles and blank[index - 1] != "-":
            angles -= 1
        elif letter == "," and not depth and not angles:
            parts.append(text[last:index])
            last = index + 1
    return [*parts, text[last:]] if text.strip() else []


def _is_template(blank: str, start: int) -> bool:
    """Whether the ``<`` at `start` is closed before anything that a list of template arguments cannot hold."""
    depth = 0
    for letter in blank[start : start + 300]:
        depth += (letter == "<") - (letter == ">")
        if not depth:
            return True
        if letter in ";{}":
            return False
    return False


def _replaced(text: str, start: int, end: int, new: str) -> str:
    """With the lines that go kept as empty ones, so that those after keep their numbers."""
    missing = text.count("\n", start, end) - new.count("\n")
    return text[:start] + new + "\n" * max(0, missing) + text[end:]


def _plain_launches(text: str) -> str:
    """``hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...)`` as ``kernel<<<...>>>(...)``."""
    while found := _GGL.search(_blank(text)):
        opening = found.end() - 1
        end = _closing(_blank(text), opening)
        kernel, *rest = split(text[opening + 1 : end - 1])
        kernel = re.sub(r"^HIP_KERNEL_NAME\s*\((.*)\)$", r"\1", kernel.strip(), flags=re.DOTALL).strip("() \n")
        new = f"{kernel}<<<{','.join(rest[:4])}>>>({','.join(rest[4:])})"
        text = _replaced(text, found.start(), end, new)
    return text


def _chevrons(text: str) -> str:
    kernels = _kernels(_blank(text))
    while (at := _blank(text).find("<<<")) >= 0:
        blank = _blank(text)
        start = _callee_start(blank, at)
        callee = text[start:at].strip()
        end = blank.find(">>>", at)
        # In `f<<<g<h<1>>>>(x)` the first of four closes a template.
        while end >= 0 and blank[end + 3 : end + 4] == ">":
            end += 1
        opening = blank.find("(", end)
        if end < 0 or opening < 0 or blank[end + 3 : opening].strip():
            raise Unsupported(f"line {blank.count(chr(10), 0, at) + 1}: a launch without arguments in brackets")
        close = _closing(blank, opening)
        shape = [part.strip() for part in split(text[at + 3 : end])]
        arguments = [re.sub(r"^NULL$", "nullptr", part.strip()) for part in split(text[opening + 1 : close - 1])]
        text = _replaced(text, start, close, _start(callee, shape, arguments, kernels))
    return text


def _start(callee: str, shape: list[str], arguments: list[str], kernels: dict[str, range]) -> str:
    name, _, given = callee.partition("<")
    count = len(split(given[: given.rindex(">")])) if given else 0
    # With all its template arguments a kernel has an address, and so a symbol; where some are deduced it has none yet.
    whole = count in kernels.get(name.split("::")[-1].strip(), range(0))
    address = f"(const void*)&{callee}" if whole else "nullptr"
    spelled = re.sub(r"\s+", " ", callee).replace('"', "'")
    call = f"[&](auto... kw_each) {{ {callee}(kw_each...); }}"
    following = "".join(f", {argument}" for argument in arguments)
    return f'::kw::start("{spelled}", {address}, false, ::kw::Configuration{{{", ".join(shape)}}}, {call}{following})'


def _kernels(blank: str) -> dict[str, range]:
    """Kernels defined here: how many template arguments name one. None do where the name is overloaded."""
    found: dict[str, range] = {}
    plain = re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", "", blank)
    for match in _KERNEL.finditer(plain):
        before = plain[: match.start()].rstrip()
        before = re.sub(r"(?:static|inline|extern\s+)\s*$", "", before).rstrip()
        counts = range(1)
        if before.endswith(">"):
            head = before[before.rfind("template") :]
            parameters = split(head[head.find("<") + 1 : -1])
            needed = [parameter for parameter in parameters if "=" not in parameter]
            counts = range(len(needed), len(parameters) + 1)
        found[match[1]] = counts if found.get(match[1], counts) == counts else range(0)
    return found


def _callee_start(blank: str, at: int) -> int:
    """Where the kernel's name before ``<<<`` begins: a name, with template arguments or without."""
    end = len(blank[:at].rstrip())
    if blank[end - 1] == ">":
        depth = inside = 0
        while end:
            end -= 1
            inside += (blank[end] in ")]}") - (blank[end] in "([{")
            depth += 0 if inside else (blank[end] == ">") - (blank[end] == "<")
            if not depth and not inside:
                break
    match = _CALLEE.search(blank[:end].rstrip())
    if not match:
        raise Unsupported(f"line {blank.count(chr(10), 0, at) + 1}: a launch of what is no name")
    return match.start()


def _shared_variables(text: str) -> str:
    position = 0
    while found := _SHARED.search(_blank(text), position):
        blank = _blank(text)
        end = _declaration_end(blank, found.end())
        if end < 0:
            position = found.end()
            continue
        declaration = _without_attributes(text[found.end() : end])
        kind = "volatile " if "volatile" in found["before"] else ""
        parts = split(declaration)
        make: Callable[[str, str], str] = _dynamic if found["extern"] else _static
        new = "".join(make(kind + base, rest) for base, rest in _declarators(parts))
        text = _replaced(text, found.start(), end + 1, new)
        position = found.start() + len(new)
    return text


def _declaration_end(blank: str, start: int) -> int:
    depth = 0
    for index in range(start, len(blank)):
        depth += (blank[index] in "([{") - (blank[index] in ")]}")
        if depth < 0:
            return -1
        if blank[index] == ";" and not depth:
            return index
    return -1


def _without_attributes(declaration: str) -> str:
    while found := _ATTRIBUTE.search(declaration):
        opening = min(
            i for i in (declaration.find("(", found.start()), declaration.find("[[", found.start())) if i >= 0
        )
        pair = ("[", "]") if declaration[opening] == "[" else ("(", ")")
        declaration = declaration[: found.start()] + declaration[_closing(declaration, opening, *pair) :]
    return declaration


def _declarators(parts: list[str]) -> list[tuple[str, str]]:
    """Type and declarator of each variable: ``float a[4], b`` is ``float`` with ``a[4]`` and ``b``."""
    first = parts[0]
    match = re.fullmatch(r"(?P<type>.*?[\s>*&}])(?P<name>\w+\s*(?:\[.*)?)", first.strip(), re.DOTALL)
    if not match:
        raise Unsupported(f"a shared variable declared as '{first.strip()}'")
    return [(match["type"].strip(), part.strip()) for part in (match["name"], *parts[1:])]


def _static(kind: str, declarator: str) -> str:
    name = re.match(r"\w+", declarator)
    if not name:
        raise Unsupported(f"a shared variable declared as '{kind} {declarator}'")
    rest = declarator[name.end() :].split("=")[0]
    alias = f"{name[0]}_kw"
    return (
        f"typedef {kind} {alias}{rest}; "
        f'static constinit ::kw::Site {alias}_site{{sizeof({alias}), alignof({alias}), "{name[0]}", __LINE__, 0}}; '
        f"{alias}& {name[0]} = *({alias}*)kw_shared(&{alias}_site);"
    )


def _dynamic(kind: str, declarator: str) -> str:
    name = re.match(r"\w+", declarator)
    if not name:
        raise Unsupported(f"a shared array declared as '{kind} {declarator}'")
    return f"{kind}* const {name[0]} = ({kind}*)kw_dynamic_shared();"


def _assembly(text: str) -> str:
    """Waits and empty statements mean nothing here; any other instruction is refused when it would run."""
    position = 0
    while found := _ASM.search(_blank(text), position):
        opening = found.end() - 1
        end = _closing(_blank(text), opening)
        if label := _LABEL.fullmatch(text[opening:end]):
            new = f'__asm("kw_{label[1].replace(".", "_")}")'
            text = _replaced(text, found.start(), end, new)
            position = found.start() + len(new)
            continue
        body = re.findall(r'"((?:\\.|[^"\\])*)"', text[opening:end].split(":")[0])
        words = "".join(body).replace("\\n", "\n").replace("\\t", " ")
        orders = [order.split(";")[0].strip() for order in words.split("\n")]
        orders = [order for order in orders if order and not order.startswith("//")]
        new = _orders(orders, text[opening + 1 : end - 1])
        text = _replaced(text, found.start(), end, new)
        position = found.start() + len(new)
    return text


def _orders(orders: list[str], whole: str) -> str:
    """What stands for these instructions; `whole` is the statement's text between its brackets."""
    calls = [_ORDERS.get(order.split()[0], "") for order in orders]
    if all(order.startswith(_WAITS) or call for order, call in zip(orders, calls, strict=True)):
        scopes = ["::kw::of_system" if "sc0" in order else "::kw::of_device" for order in orders]
        made = [call.format(scope=scope) for call, scope in zip(calls, scopes, strict=True) if call]
        return f"({', '.join(made)})" if made else "((void)0)"
    told = " ".join(orders)[:80].replace('"', "'").replace("\\", "")
    return f'kw_refuse("inline assembly: {told}")'
