"""Where the tests find real data: the folder named by ASKWISE_DATA, or the shared one beside the checkout."""

import os
from pathlib import Path

SHARED = Path(__file__).parents[2] / "shared" / "data"
if "ASKWISE_DATA" not in os.environ and SHARED.is_dir():
    os.environ["ASKWISE_DATA"] = str(SHARED)
