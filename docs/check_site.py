"""Check a built site: links inside it lead somewhere, nothing is loaded from elsewhere, and what is pressed has a name.

python docs/check_site.py build/docs
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
FOR_MACHINES = {"canonical", "search", "author", "next", "prev", "index"}
NAMED = ("a", "button", "summary", "th")
"""What a screen reader announces by its text, or by an attribute in its place."""


class Page(HTMLParser):
    """The ids of a page, its links, what it loads, and where a name is missing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.nameless: list[str] = []
        self._open: list[list[str]] = []  # [tag, name so far, how it looks] of what is not closed yet
        self.feed(text)

    def handle_data(self, data: str) -> None:
        for entry in self._open:
            entry[1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1][0] == tag:
            _, name, looks = self._open.pop()
            if not name:
                self.nameless.append(looks)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        said = given.get("aria-label") or given.get("aria-labelledby") or given.get("title") or given.get("alt") or ""
        if tag in NAMED and (tag != "a" or "href" in given):
            self._open.append([tag, said, self.get_starttag_text() or tag])
        elif said:
            self.handle_data(said)
        if tag == "img" and "alt" not in given:
            self.nameless.append(self.get_starttag_text() or tag)
        self.ids.update(value for name in ("id", "name") if (value := given.get(name)))
        for name in ("href", "src"):
            target = given.get(name)
            if target and not target.startswith(("data:", "mailto:", "javascript:")):
                loads = (tag, name) in LOADED and given.get("rel") not in FOR_MACHINES
                self.links.append((target, loads))


def problems(root: Path) -> list[str]:
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        found += [f"{path.relative_to(root.resolve())} has {looks} without a name" for looks in page.nameless]
        for target, loads in dict.fromkeys(page.links):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if loads:
                    found.append(f"{path.relative_to(root.resolve())} loads {target}")
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            missing = not goal.exists() or (
                bool(parts.fragment) and goal in pages and unquote(parts.fragment) not in pages[goal].ids
            )
            if missing:
                found.append(f"{path.relative_to(root.resolve())} links to {target}, which is not there")
    return found


if __name__ == "__main__":
    said = problems(Path(sys.argv[1]))
    fine = "Links inside the site lead somewhere, nothing is loaded from other sites, and what is pressed has a name."
    print("\n".join(said) or fine)
    sys.exit(bool(said))
