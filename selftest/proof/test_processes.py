"""The processes of a proof end with it, even if it is killed and cannot tell them to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROOF = """
import os, time
from conformance.proof.processes import processes

if __name__ == "__main__":
    pool = processes(2)
    print(pool.submit(os.getpid).result(), flush=True)
    print("and ended", pool.submit(time.sleep, 600).result())
"""


def test_the_processes_of_a_proof_that_is_killed_end(tmp_path: Path) -> None:
    program = tmp_path / "proof.py"
    program.write_text(PROOF, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as proof:
        assert proof.stdout
        assert int(proof.stdout.readline()) != proof.pid
        proof.send_signal(signal.SIGKILL)
        said, _ = proof.communicate(timeout=60)  # the pipe that they write to is closed when the last of them ends
    assert said == ""
