"""Where things are in a saved folder, and how somebody without the key can change them."""

import hashlib
import json
from pathlib import Path
from typing import Any


def version_of(folder: Path) -> Path:
    """The folder with the files of the current version."""
    return folder / "versions" / hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, and its entry in the manifest."""
    (version_of(folder) / name).write_bytes(content)
    files = json.loads((folder / "manifest.json").read_text())["files"]
    entry = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change_manifest(folder, files={**files, name: entry})


def change_manifest(folder: Path, **entries: Any) -> None:
    """Change the manifest, and the name of the version that it belongs to."""
    before = version_of(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **entries}))
    before.rename(version_of(folder))


def make_flat(folder: Path) -> None:
    """Turn a saved folder into one of the format before versions."""
    change_manifest(folder, format_version=5)
    version = version_of(folder)
    for path in version.iterdir():
        path.rename(folder / path.name)
    version.rmdir()
    (folder / "versions" / "lock").unlink()
    (folder / "versions").rmdir()
