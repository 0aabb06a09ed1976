"""Runs a command and writes, as JSON, what it took: `python -m tests.bench.measure FILE COMMAND…`.

A process of its own that imports little: Linux counts the memory of the process that forks as the command's, too.
CPU time is that of the command and all its children; memory is the peak of whichever of them had most.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Run, measure and tell; end as the command did."""
    began = time.perf_counter()
    # Waited for here and not by subprocess, which would not tell what it took.
    process = subprocess.Popen(sys.argv[2:])
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s, rss_mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    Path(sys.argv[1]).write_text(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "rss_mib": rss_mib}), "utf-8")
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
