"""A gang of four for the tests of verdicts: each rank steps, and exchanges a byte with rank 0 in each step, as a collective does."""

import os
from pathlib import Path

import pytest

RANK = r"""
import os, signal, socket, sys, time
rank, fault = int(os.environ["JOBC_INDEX"]), os.environ.get("FAULT", "")
rendezvous = "{MASTER_ADDR}:{MASTER_PORT}".format_map(os.environ) if "MASTER_PORT" in os.environ else ""
host, port = os.environ.get("JOBC_ENDPOINTS_RANK_SYNC", rendezvous).split(",")[0].rsplit(":", 1)
hit = rank == int(os.environ.get("FAULTY", 2))
if rank == 0:
    server = socket.create_server(("", int(port)), backlog=8)
    peers = [server.accept()[0] for _ in range(3)]
else:
    for _ in range(200):
        try:
            peers = [socket.create_connection((host, int(port)))]
            break
        except OSError:
            time.sleep(0.05)
    else:
        raise TimeoutError("rank 0 does not listen")

def exchange():
    for peer in peers if rank else ():
        peer.sendall(b"x")
    for peer in peers:
        if peer.recv(1) == b"":
            raise ConnectionResetError("Connection reset by peer")
    for peer in peers if rank == 0 else ():
        peer.sendall(b"x")

for step in range(int(os.environ.get("STEPS", 40))):
    print("step", step, flush=True)
    if hit and step == 3 and fault:
        exec(fault)
    exchange()
    time.sleep(float(os.environ.get("PACE", 0.05)))
print("done", flush=True)
"""


def gang(fault="", **more):
    """The role of the gang, in which one rank has a fault: a line of Python, at its third step."""
    env = {"FAULT": fault, **{name: str(value) for name, value in more.pop("env", {}).items()}}
    resources = {"ports": {"sync": "auto"}, **more.pop("resources", {})}
    return {"rank": {"instances": 4, "resources": resources, "env": env, "run": ["python3", "-uc", RANK], **more}}


# What rank 2 does, the verdict, a part of the evidence, a part of the next step.
FAULTS = {
    "missing module": ("import not_there", "user error", "No module named 'not_there'", "image.python.packages"),
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "user error", "SIGSEGV", "PYTHONFAULTHANDLER"),
    "killed by a stranger": ("os.kill(os.getpid(), signal.SIGKILL)", "infrastructure", "SIGKILL", "find who killed it"),
    "GPU out of memory": (
        "raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 GiB')", "out of memory", "20.00 GiB", "smaller batches",
    ),
    "bad GPU": (
        "raise RuntimeError('CUDA error: uncorrectable ECC error encountered')", "node", "uncorrectable ECC", "drained",
    ),
    "full disk": ("raise OSError(28, 'No space left on device', '/data/x')", "node", "No space left on device", "free space"),
    "no permission": ("open('/etc/shadow') if os.getuid() else (_ for _ in ()).throw(PermissionError(13, 'Permission denied'))",
                      "user error", "Permission denied", "owner and mode"),
    "collective timeout": (
        "print('[E] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)', flush=True); os.abort()",
        "stall", "Watchdog caught", "did not join",
    ),
    "wrong driver": (
        "raise RuntimeError('CUDA error: CUDA driver version is insufficient for CUDA runtime version')", "user error", "insufficient", "older CUDA",
    ),
    "driver updated in use": (
        "raise RuntimeError('Failed to initialize NVML: Driver/library version mismatch')", "node", "mismatch", "restarted",
    ),
    "wrong clock": (
        "import ssl; raise ssl.SSLCertVerificationError(1, 'certificate verify failed: certificate is not yet valid')", "node", "not yet valid",
        "set the clock",
    ),
    "no way to a server": ("raise OSError(113, 'No route to host')", "infrastructure", "No route to host", "between the nodes"),
    "own exit code": ("os._exit(3)", "user error", "exit 3", None),
}

# Of each cause one; the others are slow.
QUICK = ("missing module", "killed by a stranger", "GPU out of memory", "bad GPU", "collective timeout", "no way to a server")


def faults():
    """The names of the faults, as parameters of a test."""
    return [pytest.param(fault, marks=[] if fault in QUICK else [pytest.mark.slow]) for fault in FAULTS]


def fits(verdict, fault):
    """Checks a verdict against what is expected of a fault."""
    _, kind, evidence, step = FAULTS[fault]
    assert verdict["kind"] == kind and evidence in "; ".join(verdict["evidence"]), verdict
    assert (step or "") in verdict.get("next", "") and (step is None) == ("next" not in verdict), verdict


def wrote(fault, task, verdict):
    """A row of the table in docs/guides/operate.md, into the file that WROTE names."""
    if path := os.environ.get("WROTE"):
        with Path(path).open("a") as rows:
            evidence = "; ".join(verdict["evidence"])
            rows.write(f"| {fault} | `{task}` | {verdict['kind']} | {evidence} | {verdict.get('next', '')} |\n")
