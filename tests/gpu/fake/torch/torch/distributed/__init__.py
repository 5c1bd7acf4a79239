"""Stands for `torch.distributed`: a sum over the ranks, which meet at the address of the first."""

import os
import socket
import time

RANK, SIZE = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))


def init_process_group(backend):
    assert backend == "gloo"


def get_rank():
    return RANK


def get_world_size():
    return SIZE


def all_reduce(tensor):
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        with socket.create_server(address) as server:
            others = [server.accept()[0] for _ in range(SIZE - 1)]
            tensor.value += sum(float(other.recv(100)) for other in others)
            for other in others:
                other.sendall(str(tensor.value).encode())
                other.close()
        return
    for _ in range(100):
        try:
            with socket.create_connection(address) as first:
                first.sendall(str(tensor.value).encode())
                tensor.value = float(first.recv(100))
                return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError("the first rank does not answer")


def destroy_process_group():
    pass
