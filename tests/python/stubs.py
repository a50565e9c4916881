#!/usr/bin/env python3
"""Compares the docstrings of the stubs with those of the module: editors show the stubs', `help` the module's.

    tests/python/stubs.py [--write]

Classes, functions and attributes that a user sees are compared. `--write` puts the docstrings of the module into the
stubs. What the stubs say of signatures is stubtest's business.
"""

import ast
import inspect
import sys
from pathlib import Path

import eris_db

STUBS = Path(__file__).resolve().parents[2] / "crates/python/python/eris_db/__init__.pyi"
QUOTES = '"""'


def is_seen(name):
    return not name.startswith("_") or name.startswith("__arrow")


def documented(body, owner):
    """What the stubs declare that has a docstring in the module: its node, its docstring there, and the one here.

    Docstrings here are nodes, too: the first statement of a class or function, the one behind an attribute.
    """
    for node, follower in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and is_seen(node.name):
            name, here = node.name, node.body[0]
        elif isinstance(node, ast.AnnAssign) and isinstance(owner, type):
            name, here = node.target.id, follower
        else:
            continue
        known = getattr(owner, name)
        # What has none inherits one, which says nothing of it.
        text = inspect.cleandoc(known.__doc__) if known.__doc__ else None
        constant = here.value if isinstance(here, ast.Expr) else None
        is_text = isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        yield node, text, here if is_text else None
        if isinstance(node, ast.ClassDef):
            yield from documented(node.body, known)


def quoted(text, indent):
    """A docstring as it stands in the stubs."""
    lines = text.splitlines()
    if len(lines) == 1:
        return f"{indent}{QUOTES}{text}{QUOTES}"
    return "\n".join(f"{indent}{line}".rstrip() for line in [QUOTES + lines[0], *lines[1:], QUOTES])


def with_docstrings(source, found):
    """The stubs with the docstrings of the module."""
    lines = source.splitlines()
    # From the end, so that the lines before stay where they are.
    for node, text, here in sorted(found, key=lambda one: one[0].lineno, reverse=True):
        if here is not None:
            del lines[here.lineno - 1 : here.end_lineno]
        if text is None:
            continue
        inner = " " * (node.col_offset + 4)
        if isinstance(node, ast.AnnAssign):
            lines.insert(node.end_lineno, quoted(text, inner[4:]))
        elif isinstance(node, ast.ClassDef):
            first = here or node.body[0]
            decorators = getattr(first, "decorator_list", [])
            at = min(statement.lineno for statement in [first, *decorators])
            lines.insert(at - 1, quoted(text, inner) + "\n" * (here is None))
        elif here is not None:
            lines.insert(here.lineno - 1, quoted(text, inner))
        else:
            last = node.end_lineno - 1
            lines[last] = lines[last].removesuffix(" ...") + "\n" + quoted(text, inner)
    return "\n".join(lines) + "\n"


def main():
    source = STUBS.read_text(encoding="utf-8")
    found = list(documented(ast.parse(source).body, eris_db))
    if "--write" in sys.argv:
        STUBS.write_text(with_docstrings(source, found), encoding="utf-8")
        sys.exit()
    wrong = [node for node, text, here in found if text != (inspect.cleandoc(here.value.value) if here else None)]
    for node in wrong:
        name = node.target.id if isinstance(node, ast.AnnAssign) else node.name
        print(f"{STUBS.name}:{node.lineno}: the docstring of {name} is not the module's; stubs.py --write puts it in")
    print(f"{len(found) - len(wrong)} of {len(found)} docstrings of the stubs are those of the module")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
