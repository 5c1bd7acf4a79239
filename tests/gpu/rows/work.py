"""Rows about programs that compute: alone, and compared with the same program without jobc."""

import os
import shutil
import statistics
import subprocess
import sys
import time

from rows.host import Failed, NotAvailable, last_lines, numbers, python
from rows.programs import CUDA, matrix

PAIRS = 3
# A median below this is a failure, not noise.
MIN_RATIO = 0.9


def program(host):
    """a CUDA program allocates memory of the card"""
    host.whole_cards()
    output = host.run(python(CUDA + "allocate(1)"), 1)
    if "1 device" not in output or "1 GiB: fits" not in output:
        raise Failed(output)
    return output.splitlines()[0]


def throughput(host):
    """bf16 matrix product, size 8192, without jobc and with jobc in turn, TFLOP/s"""
    host.needs_torch()
    seconds = 0.2 if host.fake else 5
    bare, under = [], []
    for _ in range(PAIRS):
        bare.append(rate(run_bare(host, matrix(seconds))))
        under.append(rate(host.run(python(matrix(seconds)), 1, seconds=300)))
    return compared(host, bare, under)


def cuda_start(host):
    """a process that only calls cuInit, without jobc and with jobc in turn, ms"""
    bare, under = [], []
    for _ in range(PAIRS):
        begin = time.monotonic()
        run_bare(host, CUDA)
        middle = time.monotonic()
        host.run(python(CUDA), 1)
        bare.append((middle - begin) * 1000)
        under.append((time.monotonic() - middle) * 1000)
    return f"{listed(bare, 0)}; {listed(under, 0)}"


def run_bare(host, text):
    """The output of a program on the first card, without jobc."""
    # The simulated driver counts the nodes in /dev, of which the host itself has none.
    environment = os.environ | host.variables | {"CUDA_VISIBLE_DEVICES": host.card()["uuid"]} | ({"FAKE_CUDA_DEVICES": "1"} if host.fake else {})
    answer = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if answer.returncode:
        raise Failed(f"without jobc: {last_lines(answer)}")
    return answer.stdout


def rate(output):
    return numbers(r"([\d.]+) TFLOP/s", output)[-1]


def listed(values, digits=1):
    return ", ".join(f"{value:.{digits}f}" for value in values)


def compared(host, bare, under):
    """Both lists, and the median ratio of the pairs."""
    ratio = statistics.median(one / other for one, other in zip(under, bare, strict=True))
    text = f"{listed(bare)}; {listed(under)}; median ratio {ratio:.2f}"
    if ratio < MIN_RATIO and not host.fake:
        raise Failed(text)
    return text


def traced(host):
    """`jobc trace` counts a CUDA program's calls for 3 s"""
    if not shutil.which("strace"):
        raise NotAvailable("`strace` is not installed")
    host.whole_cards()
    # Memory is allocated with a driver call; work is submitted without one.
    loop = CUDA + "while True:\n    memory = allocate(1)\n    work(memory, 1)\n    call('cuMemFree_v2', memory)\n    time.sleep(0.05)\n"
    with host.detached(host.task(python(loop), 1)) as job:
        time.sleep(1 if host.fake else 4)
        rows = host.json("trace", job, "--duration", "3s")["calls"]
    if not any(row["call"] == "ioctl" for row in rows):
        raise Failed(f"{rows}")
    return ", ".join(f"{row['calls']} {row['call']} on {row['node']}" for row in rows)


ROWS = [program, throughput, cuda_start, traced]
