"""Programs that rows run in tasks."""

# Uses the driver API, with no library except libcuda.
CUDA = """
import ctypes, sys, time
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(f"no driver library: {error}")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"{name} failed: {code}")
call("cuInit", 0)
count = ctypes.c_int()
call("cuDeviceGetCount", ctypes.byref(count))
name = ctypes.create_string_buffer(100)
device = ctypes.c_int()
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDeviceGetName", name, 100, device)
context = ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
def allocate(gib):
    memory = ctypes.c_uint64()
    code = cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(gib << 30))
    print(f"{gib} GiB: {'fits' if code == 0 else 'error %d' % code}", flush=True)
    return memory
def work(memory, gib):
    call("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(gib << 30))
    call("cuCtxSynchronize")
def multiprocessors():
    number = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(number), 16, device)
    return number.value
print(f"{count.value} device: {name.value.decode()}", flush=True)
"""

# Works until it is killed, and counts its steps in /out/steps.
CUDA_LOOP = CUDA + """
memory, steps = allocate(2), 0
while True:
    for _ in range(20):
        work(memory, 2)
    steps += 1
    with open("/out/steps", "w") as file:
        file.write(str(steps))
"""

# Half a second to warm up, then products for `SECONDS`.
MATRIX = """
import time, torch
size = 8192
a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
def products(seconds):
    torch.cuda.synchronize()
    start, count = time.time(), 0
    while time.time() - start < seconds:
        for _ in range(10): b = a @ a
        torch.cuda.synchronize()
        count += 10
    return count * 2 * size**3 / (time.time() - start) / 1e12
products(0.5)
print(f"{products(SECONDS):.1f} TFLOP/s, {torch.cuda.device_count()} device", flush=True)
"""

# One process of torchrun; the sum is made on the CPU, since NCCL allows one rank a card.
TORCHRUN = """
import torch, torch.distributed as ranks
ranks.init_process_group("gloo")
product = torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")
total = torch.tensor([float(product[0][0])])
ranks.all_reduce(total)
print(f"rank {ranks.get_rank()} of {ranks.get_world_size()}: {total.item():.0f}", flush=True)
ranks.destroy_process_group()
"""


def matrix(seconds):
    return MATRIX.replace("SECONDS", str(seconds))
