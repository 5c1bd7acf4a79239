"""Generates jobs of any size from the parts of real jobs. `jobs.py roles 1000` prints one."""

import sys


def roles(count):
    """A job with this many different roles; every tenth needs the previous one."""
    head = """\
version: 1
name: many
image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
params: {batch_size: 256, lr: 0.1}
env: {NCCL_DEBUG: warn}
data:
  corpus: {source: "pvc:corpus", mount: /data}
roles:
"""
    body = []
    for i in range(count):
        body.append(f"""\
  role-{i}:
    instances: {i % 4 + 1}
    resources: {{cpu: {i % 16 + 1}, memory: {i % 64 + 1}GiB, shm: 512MiB, gpu: {i % 3}}}
    env:
      ROLE_NUMBER: {i}
      LR: ${{{{ params.lr }}}}
    run: python train.py --batch-size ${{{{ params.batch_size }}}} --shard {i}
""")
        if i % 10 == 9:
            body.append(f"    needs: {{role-{i - 1}: succeeded}}\n")
    return head + "".join(body)


def instances(count):
    """A job with one role of this many instances."""
    return f"""\
version: 1
name: wide
image: python:3.12-slim
roles:
  worker:
    instances: {count}
    resources: {{cpu: 1, memory: 1GiB, gpu: 0}}
    run: python work.py --shard $JOBC_INDEX --of $JOBC_INSTANCES
"""


if __name__ == "__main__":
    print({"roles": roles, "instances": instances}[sys.argv[1]](int(sys.argv[2])), end="")
