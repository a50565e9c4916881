"""The module graph of a crate, read from its sources.

A node is a module with a file of its own, named by its path: `("plan", "rules")` is `plan/rules.rs`, `()` is `lib.rs`.
An edge says that a file names an item that another file defines. Re-exports are looked through: whoever uses
`crate::plan::Rule` depends on the file that defines `Rule`, not on the one that passes it on; and to pass an item on is
no use of it. Tests are left out: everything below `#[cfg(test)]` or `#[cfg(loom)]`.

This reads text, not meaning: it does not expand macros, and it does not know the methods of types.
"""

import re
import sys
import tempfile
from pathlib import Path

SILENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\(?:u\{\w+\}|x\w\w|.)|[^\\'])'""",
    re.DOTALL | re.VERBOSE,
)
TEST_ONLY = re.compile(r"#\[cfg\((?:test|loom|all\((?:test|loom)\b[^\]]*)\)\]")
MODULE = re.compile(r"\bmod\s+(\w+)\s*;")
USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)\s+(\w+)")
PATH = re.compile(r"(?<![\w:])\$?(\w+(?:::\w+)+)")


def without_silent(text):
    """The text without comments and literals."""
    return SILENT.sub(lambda match: "" if match.group().startswith("/") else '""', text)


def item_end(text, begin):
    """Where the item that begins there ends: after its `;`, or its block."""
    depth = 0
    for place in range(begin, len(text)):
        sign = text[place]
        if sign in "{([":
            depth += 1
        elif sign in "})]":
            depth -= 1
            if depth == 0 and sign == "}":
                return place + 1
        elif sign == ";" and depth == 0:
            return place + 1
    return len(text)


def without_tests(text):
    """The text without items for tests, and the modules with a file of their own among these."""
    modules = set()
    while found := TEST_ONLY.search(text):
        end = item_end(text, found.end())
        modules |= set(MODULE.findall(text[found.end() : end]))
        text = text[: found.start()] + text[end:]
    return text, modules


def expanded(tree):
    """The paths of a `use` tree, each with the name it gets: `a::{b, c as d}` is `a::b`, `b` and `a::c`, `d`."""
    tree = tree.strip()
    group = re.fullmatch(r"([^{]*)\{(.*)\}", tree, re.DOTALL)
    if not group:
        path, _, name = tree.partition(" as ")
        segments = [segment.strip().removeprefix("$") for segment in path.split("::") if segment.strip()]
        if segments and segments[-1] == "self":
            segments.pop()
        if segments:
            yield segments, name.strip() or segments[-1]
        return
    prefix, body = group.groups()
    depth, begin = 0, 0
    for place, sign in enumerate(body + ","):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            if part := body[begin:place].strip():
                yield from expanded(prefix + part)
            begin = place + 1


class File:
    """What is read of one file: names it gives to paths, names it defines, paths it uses."""

    def __init__(self, text):
        self.lines = text.count("\n")
        code, self.test_modules = without_tests(without_silent(text))
        self.names, self.globs, self.used = {}, [], []
        body = USE.sub("", code)
        words = set(re.findall(r"\w+", body))
        for passed_on, tree in USE.findall(code):
            for segments, name in expanded(re.sub(r"\s+", " ", tree)):
                if segments[-1] == "*":
                    self.globs.append(segments[:-1])
                else:
                    self.names[name] = segments
                if not passed_on or name in words:
                    self.used.append(segments)
        self.used += [path.split("::") for path in PATH.findall(body)]
        self.defined = set(DEFINED.findall(body))


class Crate:
    """The modules of a crate and who uses whom."""

    def __init__(self, source):
        source = Path(source)
        self.files = {}
        self.paths = {}
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            if "tests" not in module and "bin" not in module[:1]:
                self.files[module] = File(path.read_text(encoding="utf-8"))
                self.paths[module] = path
        for module in list(self.files):
            if self.for_tests(module):
                del self.files[module]
        self.edges = {module: self.uses(module) for module in self.files}

    def for_tests(self, module):
        """Whether it, or a module that it is part of, is declared for tests only."""
        parents = ((module[:end], module[end]) for end in range(len(module)))
        return any(parent in self.files and name in self.files[parent].test_modules for parent, name in parents)

    def uses(self, module):
        """The modules whose items it names."""
        targets = (self.definer(module, segments) for segments in self.files[module].used)
        return {target for target in targets if target is not None} - {module}

    def definer(self, module, segments, seen=()):
        """The module that defines what the path leads to, seen from a module; none if it leads out of the crate."""
        first, rest = segments[0], list(segments[1:])
        if first == "crate":
            place = ()
        elif first == "self":
            place = module
        elif first == "super":
            place = module[:-1]
            while rest and rest[0] == "super":
                place, rest = place[:-1], rest[1:]
        else:
            place, rest = module, list(segments)
            known = module + (first,) in self.files or first in self.files[module].names
            if not known and not self.glob_with(module, first, seen):
                return None
        return self.walk(place, rest, seen)

    def walk(self, place, rest, seen):
        """The module that defines what is left of a path, from a module on."""
        if place not in self.files:
            return None
        if not rest or rest[0] == "*":
            return place
        if (place, rest[0]) in seen:
            return None
        seen = (*seen, (place, rest[0]))
        if place + (rest[0],) in self.files:
            return self.walk(place + (rest[0],), rest[1:], seen)
        file = self.files[place]
        if rest[0] in file.names and rest[0] not in file.defined:
            return self.definer(place, file.names[rest[0]] + rest[1:], seen)
        if rest[0] not in file.defined and (target := self.glob_with(place, rest[0], seen)):
            return target
        return place

    def glob_with(self, module, name, seen):
        """The module that a `use …::*` of this one leads to and that defines the name."""
        for segments in self.files[module].globs:
            if (module, "*", name) in seen:
                continue
            target = self.definer(module, segments, (*seen, (module, "*", name)))
            if target is not None and name in self.files[target].defined:
                return target
        return None

    def cycles(self):
        """Sets of more than one file, each of which leads to each other, the largest first.

        A folder's own file, `plan.rs` beside `plan/`, calls what is in the folder: that is its purpose, and no edge here.
        """
        edges = {
            module: {target for target in targets if target[: len(module)] != module}
            for module, targets in self.edges.items()
        }
        return sorted((part for part in components(edges) if len(part) > 1), key=lambda part: (-len(part), part))

    def rooms(self):
        """For each top-level module the others that it uses. The root is none: it may use all of them."""
        rooms = {}
        for module, targets in self.edges.items():
            if module:
                room = rooms.setdefault(room_of(module), set())
                room |= {room_of(target) for target in targets}
        return {room: targets - {room} for room, targets in rooms.items()}


def room_of(module):
    """The top-level module that it is in."""
    return module[0] if module else "lib"


def name_of(module):
    """The module's path as Rust writes it."""
    return "::".join(module) or "lib"


def components(edges):
    """The strongly connected components of a graph, each sorted (Tarjan 1972, without recursion)."""
    index, low, stack, found = {}, {}, [], []
    for root in sorted(edges):
        work = [(root, iter(sorted(edges[root])))] if root not in index else []
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for target in targets:
                if target not in index:
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    place = stack.index(node)
                    found.append(sorted(stack[place:]))
                    del stack[place:]
    return found


def self_test():
    """A crate with a cycle that only a re-export and a path without `use` show, and a test that would close another."""
    sources = {
        "lib.rs": "mod a; mod b; mod c; pub use a::A; #[cfg(test)] mod only;",
        "a.rs": "pub mod inner; pub use inner::Inner; use crate::{b::{self, B as Other}, c}; // crate::only::Only",
        "a/inner.rs": 'pub struct Inner; const TEXT: &str = "crate::b::B";',
        "b.rs": "pub struct B; fn f() { super::c::g(); } #[cfg(test)] mod tests { use crate::only::Only; }",
        "c.rs": "pub fn g() -> crate::a::Inner { crate::A::new() }",
        "only.rs": "use crate::b::B; pub struct Only;",
    }
    sources["a.rs"] += " pub struct A; impl A { pub fn new() {} }"
    with tempfile.TemporaryDirectory() as folder:
        for path, text in sources.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        crate = Crate(folder)
    assert crate.cycles() == [[("a",), ("b",), ("c",)]], crate.cycles()
    assert crate.edges[("c",)] == {("a",), ("a", "inner")}, crate.edges
    assert crate.rooms() == {"a": {"b", "c"}, "b": {"c"}, "c": {"a"}}, crate.rooms()


def main():
    """Prints the cycles of a crate and, for each of its rooms, the rooms that it uses."""
    crate = Crate(sys.argv[1])
    for cycle in crate.cycles():
        print(f"cycle of {len(cycle)}: {', '.join(map(name_of, cycle))}")
    for room, used in sorted(crate.rooms().items()):
        print(f"{room} → {', '.join(sorted(used)) or 'nothing'}")


if __name__ == "__main__":
    main()
