"""Runs podman's own system tests (`test/system/*.bats` of its source) with jobc as its runtime: those files that need no network, no
systemd, and not only podman itself.
"""

import bats
import pytest
from peer import PEERS

RUNTIMES = ["jobc"]
INSTALLED = IMAGE = PEERS / "podman/testimage.tar"
TESTS = PEERS / "podman/test/system"
FILES = ["030-run", "032-sig-proxy", "035-logs", "040-ps", "045-start", "050-stop", "055-rm", "075-exec", "080-pause", "130-kill", "140-diff", "160-volumes",
         "170-run-userns", "190-run-ipcns", "200-pod", "280-update", "400-unprivileged-access", "450-interactive", "700-play"]
# A storage of its own with the image that the tests expect, and no network in containers and builds. Some tests replace the
# configuration, and with it the runtime, by podman's default: that is crun.
PREPARE = """
own=$TMPDIR/podman
mkdir "$own"
cat >"$own/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
netns = "none"
[network]
network_config_dir = "$own/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "tested"
[engine.runtimes]
tested = ["$TESTED"]
CONF
printf '[storage]\\ndriver = "overlay"\\ngraphroot = "%s"\\nrunroot = "%s"\\n' "$own/graph" "$own/run" >"$own/storage.conf"
export CONTAINERS_CONF=$own/containers.conf CONTAINERS_STORAGE_CONF=$own/storage.conf BUILDAH_RUNTIME=$TESTED BATS_TMPDIR=$TMPDIR
podman import --change 'LABEL created_by=test/system/build-testimage' --change 'LABEL created_at=2022-06-15T15:25:45Z' --change 'WORKDIR /home/podman' \\
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \\
    --change 'CMD ["/bin/echo", "This container is intended for podman CI testing"]' "$IMAGE_TAR" quay.io/libpod/testimage:20220615 >/dev/null
"""


@pytest.mark.duration(65)
@pytest.mark.needs("bats", "podman", "buildah")
@pytest.mark.parametrize("file", FILES)
def test_its_own_tests_pass(runtime, program, compare, file):
    found = bats.run(runtime, TESTS / f"{file}.bats", {"TESTED": program, "IMAGE_TAR": str(IMAGE)}, PREPARE)
    compare(found, lambda test: test.split()[0] == file)
