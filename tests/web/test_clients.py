"""The programs in the guide that call the server run as they stand there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from tests.web.browser import served

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "stateless.md"


RUNS = {"py": [sys.executable, "-c"], "js": ["node", "--input-type=module", "-e"], "r": ["Rscript", "-e"]}


@pytest.mark.parametrize(("language", "run"), RUNS.items())
def test_the_client_of_the_guide(folder, language, run):
    if shutil.which(run[0]) is None:
        pytest.skip(f"{run[0]} is not installed")
    if (
        language == "r"
        and subprocess.run(["Rscript", "-e", "library(httr2); library(jsonlite)"], capture_output=True).returncode
    ):
        pytest.skip("httr2 or jsonlite is not installed (Debian: apt-get install r-cran-httr2 r-cran-jsonlite)")
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with served(folder) as address:
        text = code.replace("http://127.0.0.1:8000", address.rstrip("/"))
        done = subprocess.run([*run, text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.match(r"ask (city|smoker|blood) (ill|well)\nNext: ", done.stdout)
