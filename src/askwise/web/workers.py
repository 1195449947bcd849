"""The supervisor of several worker processes."""

from __future__ import annotations

from uvicorn.supervisors.multiprocess import Multiprocess


class Supervisor(Multiprocess):
    """Replaces a worker that dies at once, also while it waits for that worker to say that it is alive."""

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            # The worker's end of their pipe: as long as a copy is open here, the pipe does not end with the worker, and
            # an answer would be waited for as long as a silent worker is given, with nobody looking after the others.
            process.child_conn.close()
        super().keep_subprocess_alive()
