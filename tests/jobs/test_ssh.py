"""Tests the ssh between instances of an unprivileged user: what the pods of a job run, by the sshd and ssh of this host."""

import json
import os
import subprocess

import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.accounts("root"), pytest.mark.needs("root", "sshd", "ssh", "ssh-keygen")]
ID = 1000
MARK = "of the worker"
JOB = {
    "version": 1, "name": "osu", "image": "mpioperator/mpi-pi:openmpi",
    "roles": {
        "launcher": {"user": f"{ID}:{ID}", "resources": {"cpu": 1, "memory": "1GiB"},
                     "run": ["ssh", "worker-0", 'echo "user $(id -u) $MARK"']},
        "worker": {"user": f"{ID}:{ID}", "instances": 1, "resources": {"cpu": 1, "memory": "1GiB"}},
    },
    "distributed": {"framework": "mpi", "roles": {"launcher": "launcher", "worker": "worker"}},
}
TARGETS = "version: 1\ntargets: {ocp: {backends: [kubernetes], kubernetes: {namespace: ml, pod_security: restricted}}}\n"


class Pods:
    """The pods of the job: their commands, and what their image and volumes have."""

    def __init__(self, jobs, name, passwd):
        yaml = needs.package("yaml", "PyYAML")
        self.place = jobs.directory / name
        self.home, keys = self.place / "home", self.place / "jobc/ssh"
        keys.mkdir(parents=True)
        self.home.mkdir()
        for path in (self.home, self.place, keys.parent, keys):
            path.chmod(0o755)
        os.chown(self.home, ID, ID)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / "id_ed25519"], check=True)
        (keys / "id_ed25519.pub").rename(keys / "authorized_keys")
        (keys / "id_ed25519").chmod(0o644)
        (self.place / "hosts").write_text("127.0.0.1 localhost worker-0\n")
        (self.place / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\n{passwd.format(home=self.home)}")
        (keys.parent / "hostfile").write_text("worker-0 slots=1\n")
        (self.place / "job.json").write_text(json.dumps(JOB))
        (self.place / "targets.yaml").write_text(TARGETS)
        done = jobs.call("build", "--target", "ocp", "-o", str(self.place / "out"), "job.json", cwd=self.place)
        assert done.returncode == 0, done.stderr
        objects = [found for file in (self.place / "out").rglob("*.yaml") for found in yaml.safe_load_all(file.read_text())]
        jobset = next(found for found in objects if found["kind"] == "JobSet")
        self.specs = {role["name"]: role["template"]["spec"]["template"]["spec"] for role in jobset["spec"]["replicatedJobs"]}

    def start(self, role):
        """As the user of its security context; the home directory of the variable is not that of /etc/passwd."""
        container = self.specs[role]["containers"][0]
        assert container["securityContext"]["runAsUser"] == ID, container["securityContext"]
        # The kubelet makes one `$` of two.
        command = [word.replace("$$(", "$(").replace("/etc/jobc", str(self.place / "jobc")) for word in container["command"]]
        mounts = "".join(f"mount --bind {self.place}/{name} /etc/{name} && " for name in ("hosts", "passwd"))
        drop = ["setpriv", f"--reuid={ID}", f"--regid={ID}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        env = {"PATH": os.environ["PATH"], "HOME": "/", "MARK": MARK}
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", f'{mounts} exec "$@"', "sh", *drop, *command], env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)


def test_an_unprivileged_user_logs_in(jobs):
    """At a port and with keys of its own, and it has the variables of the other instance."""
    pods = Pods(jobs, "user", f"mpi:x:{ID}:{ID}::{{home}}:/bin/sh\n")
    with pods.start("worker") as worker, pods.start("launcher") as launcher:
        try:
            out, _ = launcher.communicate(timeout=60)
        finally:
            worker.kill()
            launcher.kill()
        assert launcher.returncode == 0 and f"user {ID} {MARK}" in out, f"exit {launcher.returncode}: {out}{worker.stdout.read()}"


@pytest.mark.parametrize("passwd, expected", [("", f"ssh needs a user with the id {ID} in /etc/passwd"),
                                              (f"mpi:x:{ID}:{ID}::/:/bin/sh\n", "ssh needs a home directory that the user can write to")],
                         ids=["without a name", "without a home"])
def test_what_the_image_lacks_is_named(jobs, passwd, expected):
    pods = Pods(jobs, f"lacks-{len(passwd)}", passwd)
    with pods.start("worker") as worker:
        out, _ = worker.communicate(timeout=20)
    assert worker.returncode != 0 and expected in out, f"exit {worker.returncode}: {out}"
