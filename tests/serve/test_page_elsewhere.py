"""Jobs that the page in Chromium writes, submits and watches at other places than this host."""

import importlib.util
import os
import sys
from contextlib import contextmanager

import pytest

from harness import REPOSITORY, scratch
from service import Service

pytestmark = [pytest.mark.slow, pytest.mark.isolated, pytest.mark.needs("root"), pytest.mark.duration(120)]
PAGE = ("--page", str(REPOSITORY / "serve/page/dist"))
JOB = "version: 1\nname: elsewhere\nimage: {image}\nroles:\n  main:\n    resources: {{cpu: 1, memory: 64MiB}}\n    run: echo hello from elsewhere\n"


def suite(name, module, *more):
    """A module of another suite. Several suites have one of its name."""
    path = REPOSITORY / f"tests/{name}/{module}.py"
    sys.path.extend(str(REPOSITORY / "tests" / each) for each in more)
    spec = importlib.util.spec_from_file_location(f"{name}_{module}", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@contextmanager
def served(service, targets):
    """The service with a targets file."""
    (service.open / "targets.yaml").write_text(f"version: 1\ntargets: {targets}\n")
    service.start()
    try:
        yield {"JOBC_PAGE_LINK": service.link, "JOBC_PAGE_PLACE": "lab"}
    finally:
        service.stop()


def test_on_slurm(steps):
    with suite("slurm", "cluster", "gpu", "images", "remote").cluster() as slurm:
        service = Service(slurm.home.parent, *PAGE, start=False)
        service.program, service.account, service.environment = slurm.program, slurm.account, slurm.environment()
        os.chown(service.open, slurm.account.uid, slurm.account.gid)
        with served(service, f"{{lab: {{backends: [slurm], slurm: {{container: none, directory: {slurm.home}/shared}}}}}}") as named:
            steps("elsewhere", JOBC_PAGE_JOB=JOB.format(image="host"), **named)


def test_on_a_cluster(steps):
    remote = suite("remote", "cluster", "remote")
    with scratch() as directory:
        cluster = remote.Cluster(directory)
        cluster.default = remote.Script(["hello from elsewhere"], pause=1)
        service = Service(directory, *PAGE, start=False)
        try:
            with served(service, f"{{lab: {{backends: [kubernetes], kubernetes: {{namespace: ml, kubeconfig: {cluster.kubeconfig()}}}}}}}") as named:
                steps("elsewhere", JOBC_PAGE_JOB=JOB.format(image="busybox"), **named)
        finally:
            cluster.close()
