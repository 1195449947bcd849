"""Where the tests find real data and, in processes that they start, both packages.

Data: the folder named by ASKWISE_DATA, or the shared one beside the checkout. The packages: those of this checkout, as
in the tests themselves, even if an editable install points to another one.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parent
SHARED = ROOT.parent / "shared" / "data"
if "ASKWISE_DATA" not in os.environ and SHARED.is_dir():
    os.environ["ASKWISE_DATA"] = str(SHARED)
SOURCES = [str(ROOT / "src"), str(ROOT / "research" / "src")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*SOURCES, os.environ.get("PYTHONPATH")]))
