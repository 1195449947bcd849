"""Whether the tests of a room notice a changed line: random mutations of the code, each tried on a copy of the tree.

    python benchmarks/mutants.py mutants.jsonl              # 50 lines, seed 0; go on where the file ends
    python benchmarks/mutants.py mutants.jsonl --table      # only print what is known so far

A mutation flips a comparison, changes a number, swaps + and -, or negates a condition. The tests of its room
(`tests/<room>`, `tests/test_<room>.py`) run until one fails. A mutation that none of them notices survives: either a
test is missing, or the mutation changes nothing that can be seen. One that takes too long counts as neither.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("predict", "value", "policy", "stopping", "calibrate", "case")
OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """One changed expression: where it is, what it was, and what it becomes."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def room(self) -> str:
        return Path(self.path).parts[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a file of one JSON line per mutation tried")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS)
    parser.add_argument("--seconds", type=float, default=300.0, help="the longest that the tests of one mutation take")
    parser.add_argument("--table", action="store_true", help="try nothing")
    options = parser.parse_args()
    drawn = drawn_mutants(options.rooms, options.count, options.seed)
    known = read(options.results)
    if not options.table:
        with tempfile.TemporaryDirectory() as place:
            tree = Path(place)
            for part in ("src", "tests", "benchmarks", "pyproject.toml"):
                copied = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
                copied(ROOT / part, tree / part)
            for mutant in drawn:
                if mutant not in known:
                    known[mutant] = outcome(mutant, tree, options.seconds)
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({**asdict(mutant), "outcome": known[mutant]}) + "\n")
    for mutant in drawn:
        change = f"{mutant.before}  ->  {mutant.after}"
        print(f"{known.get(mutant, 'not tried'):10} {mutant.path}:{mutant.line}  {change}")
    print(", ".join(f"{n} {what}" for what, n in Counter(known.get(mutant, "not tried") for mutant in drawn).items()))


def drawn_mutants(rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Random lines of the rooms, and one of the mutations of each; the same ones for the same code and seed."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for room in rooms:
        for path in sorted((ROOT / "src/askwise" / room).rglob("*.py")):
            for mutant in mutants_of(path):
                by_line.setdefault((mutant.path, mutant.line), []).append(mutant)
    rng = random.Random(seed)
    lines = rng.sample(sorted(by_line), min(count, len(by_line)))
    return [rng.choice(by_line[line]) for line in lines]


def mutants_of(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))  # in bytes, as the columns of `ast` are
    for node in ast.walk(ast.parse(text)):
        after = changed(node)
        if after is not None and isinstance(node, ast.expr) and node.end_lineno is not None:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
            place = path.relative_to(ROOT).as_posix()
            yield Mutant(place, node.lineno, start, end, ast.unparse(node), ast.unparse(after))
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            test = node.test
            start = starts[test.lineno - 1] + test.col_offset
            end = starts[(test.end_lineno or test.lineno) - 1] + (test.end_col_offset or 0)
            negated = ast.UnaryOp(ast.Not(), test)
            place = path.relative_to(ROOT).as_posix()
            yield Mutant(place, test.lineno, start, end, ast.unparse(test), ast.unparse(negated))


def changed(node: ast.AST) -> ast.expr | None:
    """The expression with another meaning; None for one that is left alone."""
    if isinstance(node, ast.Compare):
        other = copy.copy(node)
        other.ops = [OPPOSITE[type(node.ops[0])](), *node.ops[1:]]
        return other
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        # Tenfold numbers, since one more or less of a large number is rarely seen; 0 and 1 change places.
        return ast.Constant(1 - node.value if node.value in (0, 1) else 10 * node.value)
    return None


def outcome(mutant: Mutant, tree: Path, seconds: float) -> str:
    """ "killed", "survived", or "too long"."""
    path = tree / mutant.path
    original = path.read_bytes()
    path.write_bytes(original[: mutant.start] + f"({mutant.after})".encode() + original[mutant.end :])
    own = tree / "tests" / mutant.room
    files = [*sorted(own.glob("test_*.py")), tree / "tests" / f"test_{mutant.room}.py"]
    # Those named after the module first: they fail soonest.
    files = sorted((file for file in files if file.exists()), key=lambda file: Path(mutant.path).stem not in file.stem)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *map(str, files)]
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as running:
        try:
            found = "survived" if running.wait(seconds) == 0 else "killed"
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            found = "too long"
    path.write_bytes(original)
    return found


def read(path: Path) -> dict[Mutant, str]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {
        Mutant(**{name: value for name, value in one.items() if name != "outcome"}): one["outcome"] for one in found
    }


if __name__ == "__main__":
    main()
