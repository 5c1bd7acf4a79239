"""Rows about jobs that wait for a card, are paused, or lose their supervisor."""

import os
import signal
import subprocess
import time
from pathlib import Path

from rows.host import Failed, python
from rows.programs import CUDA_LOOP


def queue(host):
    """two jobs that request all GPUs run one after the other"""
    count = len(host.whole_cards())
    spans = run_queued(host, "all", 2, count)
    return f"{count} GPU; the second started {spans[1][0] - spans[0][1]:.2f} s after the first ended"


def queue_for_one(host):
    """four jobs with `--queue` for one card"""
    spans = run_queued(host, "four", 4, 1, "--devices", f"{host.card()['index']}")
    gaps = [after[0] - before[1] for before, after in zip(spans, spans[1:], strict=False)]
    return f"all succeeded, one after the other, {min(gaps):.2f} to {max(gaps):.2f} s apart"


def run_queued(host, name, jobs, gpus, *words):
    """Starts jobs at once, and returns when each began and ended, in order."""
    stamps, mount = host.output(name)
    script = "date +%s.%N > /out/$JOBC_JOB-begin; sleep 1; date +%s.%N > /out/$JOBC_JOB-end"
    paths = [host.task(script, gpus, **mount) for _ in range(jobs)]
    running = [subprocess.Popen([host.jobc, "run", "--queue", *words, path], env=host.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for path in paths]
    output = [process.communicate(timeout=180)[0] for process in running]
    if any(process.returncode for process in running):
        raise Failed(" / ".join(output))
    spans = []
    for path in paths:
        job = Path(path).stem
        spans.append(tuple(float(next(stamps.glob(f"{job}*-{end}")).read_text()) for end in ("begin", "end")))
    spans.sort()
    if any(after[0] < before[1] for before, after in zip(spans, spans[1:], strict=False)):
        raise Failed(f"they ran at the same time: {spans}")
    return spans


def pause(host):
    """`jobc pause` and `jobc resume` during work"""
    output, mount = host.output("paused")

    def steps():
        return int((output / "steps").read_text() or 0) if (output / "steps").exists() else 0

    def card_state():
        card = host.card()
        power = card["state"]["power_milliwatts"]
        return "power unknown" if power is None else f"{power / 1000:.0f} W", card["memory_used"]
    with host.detached(host.task(python(CUDA_LOOP), 1, **mount)) as job:
        host.until(lambda: steps() > 1, "the program does not work")
        working, held = card_state()
        if host.call("pause", job).returncode:
            raise Failed("`jobc pause` failed")
        time.sleep(1 if host.fake else 5)
        before, (paused, kept) = steps(), card_state()
        time.sleep(1)
        if steps() != before:
            raise Failed(f"{steps() - before} steps while paused")
        if kept != held:
            raise Failed(f"{held} bytes in use before, {kept} while paused")
        if host.call("resume", job).returncode:
            raise Failed("`jobc resume` failed")
        host.until(lambda: steps() > before, "no step after `jobc resume`", 20)
    return f"{working} at work, {paused} paused; memory kept; then continued"


def killed(host):
    """`kill -9` of the supervisor"""
    output, mount = host.output("killed")
    with host.detached(host.task(python(CUDA_LOOP), 1, **mount)) as job:
        host.until((output / "steps").exists, "the program does not work")
        record = host.json("inspect", job)
        pids = {task["process"]["pid"] for task in record["tasks"]}
        if not host.fake and not pids & host.processes():
            raise Failed(f"NVML does not report {pids}")
        os.kill(record["supervisor"]["pid"], signal.SIGKILL)
        host.until(lambda: host.json("inspect", job)["state"] == "lost", "the job is not `lost`", 20)
        host.until(lambda: not pids & host.processes(), "a process is left on the card", 20)
        if any(lease["job"] == job for lease in host.json("gpu", "leases")["leases"]):
            raise Failed("the lease is left")
    return "job `lost`, lease free, no process left on the card"


ROWS = [queue, queue_for_one, pause, killed]
