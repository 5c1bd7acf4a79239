def torch():
    try:
        import torch
    except ImportError as error:
        end(87, "the image has no PyTorch: %s" % error)
    return torch

def cuda(torch, wanted):
    if torch.version.cuda is None and torch.version.hip is None:
        end(87, "PyTorch %s of the image is built without GPUs" % torch.__version__)
    if torch.cuda.device_count() < wanted:
        end(86, "PyTorch sees %d of %d GPUs" % (torch.cuda.device_count(), wanted))

# Products of small whole numbers are exact in every precision, so each number must be right.
def matmul(gpus):
    pt = torch()
    cuda(pt, gpus)
    a, b = (pt.randint(-8, 9, (2048, 2048), generator=pt.Generator().manual_seed(n)).float() for n in (1, 2))
    right = a @ b
    for gpu in range(gpus):
        try:
            x, y = a.to("cuda:%d" % gpu), b.to("cuda:%d" % gpu)
            x @ y
            pt.cuda.synchronize(gpu)
            began = time.perf_counter()
            for _ in range(20):
                product = x @ y
            pt.cuda.synchronize(gpu)
            took = time.perf_counter() - began
            wrong = int((product.cpu() != right).sum())
        except RuntimeError as error:
            end(86, "GPU %d: %s" % (gpu, str(error).splitlines()[0]))
        if wrong:
            end(86, "GPU %d computes %d of %d numbers wrong" % (gpu, wrong, right.numel()))
        note("GPU %d: %.1f TFLOPS" % (gpu, 20 * 2 * 2048**3 / took / 1e12))

def allreduce(place, local, gpus, address, floor):
    pt = torch()
    import datetime
    import torch.distributed as dist
    if gpus:
        cuda(pt, gpus)
        pt.cuda.set_device(local)
    rank, world = place["base"] + local, place["world"]
    where = "tcp://%s:%d" % ("localhost" if rank == 0 else address, place["port"])
    backend = "nccl" if gpus else "gloo"
    try:
        dist.init_process_group(backend, init_method=where, rank=rank, world_size=world,
                                timeout=datetime.timedelta(seconds=120))
        numbers = pt.ones((256 if gpus else 16) << 18, device="cuda" if gpus else "cpu")
        best = float("inf")
        for _ in range(5):
            numbers.fill_(1)
            dist.barrier()
            began = time.perf_counter()
            dist.all_reduce(numbers)
            if gpus:
                pt.cuda.synchronize()
            best = min(best, time.perf_counter() - began)
        wrong = int((numbers != world).sum())
        dist.barrier()
        dist.destroy_process_group()
    except RuntimeError as error:
        end(86, "%s: %s" % (backend, str(error).splitlines()[0]))
    # The first process holds the store of the others.
    time.sleep(1 if rank == 0 else 0)
    if wrong:
        end(86, "%d of %d sums are wrong" % (wrong, numbers.numel()))
    # As the tests of NCCL count it: what each link carries.
    rate = numbers.numel() * 4 / best * 2 * (world - 1) / world
    text = "%.2f GB/s between %d processes by %s" % (rate / 1e9, world, backend)
    if rate < floor:
        end(86, "%s, %.2f GB/s wanted" % (text, floor / 1e9))
    if rank == 0:
        note(text)

if check == "matmul":
    matmul(int(numbers[0]))
if check == "allreduce":
    local, gpus, floor = map(int, numbers[1:3] + numbers[4:])
    allreduce(json.loads(numbers[0]), local, gpus, numbers[3], floor)
