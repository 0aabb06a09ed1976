"""Runs a command and writes its wall time, CPU time and memory as JSON: `python -m tests.bench.measure FILE COMMAND…`.

A separate process that imports little: Linux counts the memory of the forking process as the command's, too. CPU time
includes all children of the command; memory is the peak of the largest process.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Run, measure, and exit with the command's code."""
    began = time.perf_counter()
    # wait4, because subprocess does not return the resource usage.
    process = subprocess.Popen(sys.argv[2:])
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s, rss_mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    Path(sys.argv[1]).write_text(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "rss_mib": rss_mib}), "utf-8")
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
