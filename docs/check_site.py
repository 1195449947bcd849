"""Check a built site: every link inside it leads somewhere, and no page loads anything from another site.

python docs/check_site.py build/docs
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
FOR_MACHINES = {"canonical", "search", "author", "next", "prev", "index"}


class Page(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
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
    print("\n".join(said) or "Every link inside the site leads somewhere, and nothing is loaded from other sites.")
    sys.exit(bool(said))
