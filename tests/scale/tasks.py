"""Tasks that kill their worker; apart from the tests, so that a worker imports nothing else."""

import os
import signal
from pathlib import Path


def dies_once(folder: str, number: int) -> int:
    """Kills its worker when the third task is begun for the first time."""
    flag = Path(folder) / "died"
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def always_dies(number: int) -> int:
    """Kills its worker whenever it is begun."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number
