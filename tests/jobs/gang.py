"""A gang of four for the tests of verdicts: each rank steps, and exchanges a byte with rank 0 in each step, as a collective does."""

RANK = r"""
import os, signal, socket, sys, time
rank, fault = int(os.environ["JOBC_INDEX"]), os.environ.get("FAULT", "")
host, port = os.environ["JOBC_ENDPOINTS_RANK_SYNC"].split(",")[0].rsplit(":", 1)
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
