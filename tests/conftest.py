"""Where the tests find real data and, in processes that they start, the package.

Data: the folder named by ASKWISE_DATA, or the shared one beside the checkout. The package: that of this checkout, as in
the tests themselves, even if an editable install points to another one.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
if "ASKWISE_DATA" not in os.environ and SHARED.is_dir():
    os.environ["ASKWISE_DATA"] = str(SHARED)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
