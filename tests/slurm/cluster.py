"""A Slurm cluster on this host: munged, slurmctld, and a slurmd for each node.

It needs the packages of Debian and root, and no systemd. It runs in the pid, mount and network namespaces of the test, so that nothing of it
is left behind, and other tests do not see it. GPUs are generic resources on device files that the test makes: requests and assignments are
Slurm's own, and nothing can open the files.
"""

import contextlib
import os
import re
import socket
import stat
import subprocess
import time

import needs
import user
from command_line import copy_program
from harness import scratch

ADDRESS = "192.0.2.1"
NODES, GPUS, CPUS, MEMORY = 8, 8, 128, 2_000_000
SECONDS = 60
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/%n.spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/%n.pid
SlurmdLogFile={place}/%n.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/{task}
SlurmdParameters=config_overrides
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=5
MinJobAge=3600
GetEnvTimeout=10
InactiveLimit=0
GresTypes=gpu
NodeName=n[0-{last}] NodeHostname={host} NodeAddr={address} Port=[17000-{port}] CPUs={cpus} RealMemory={memory} TmpDisk=100000 Gres=gpu:a100:{gpus} Feature=a100_80g,skylake
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE PreemptMode=OFF
PartitionName=short Nodes=ALL State=UP MaxTime=60
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL State=UP PreemptMode=REQUEUE GraceTime=12
PartitionName=high Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF
Licenses=matlab:2
"""


class Cluster:
    """A running cluster, and the files of a user on it."""

    nodes, gpus, cpus, memory = NODES, GPUS, CPUS, MEMORY
    proctrack, task = "linuxproc", "none"

    def __init__(self, directory, program, account):
        self.place, self.program, self.account = directory / "slurm", program, account
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        os.chown(self.home, account.uid, account.gid)
        self.configuration = self.place / "slurm.conf"
        self.running = []

    def start(self):
        for directory in (self.place, self.place / "state", *(self.place / f"n{number}.spool" for number in range(self.nodes))):
            directory.mkdir(mode=0o755)
        key = self.place / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        host = socket.gethostname().split(".")[0]
        # Only this test's namespaces have them. Slurm resolves no name where loopback is the only interface (AI_ADDRCONFIG).
        names = " ".join(f"n{number}" for number in range(self.nodes))
        (self.place / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {host} {names}\n")
        mount(self.place / "hosts", "/etc/hosts")
        (self.place / "bin").mkdir()
        (self.place / "bin/jobc").symlink_to(self.program)
        self.log_in()
        for words in (["link", "add", "slurm0", "type", "bridge"], ["address", "add", f"{ADDRESS}/24", "dev", "slurm0"],
                      ["link", "set", "slurm0", "up"]):
            subprocess.run(["ip", *words], check=True)
        files = self.make_gpus()
        (self.place / "gres.conf").write_text(f"AutoDetect=off\nNodeName=n[0-{self.nodes - 1}] Name=gpu Type=a100 File={files}[0-{self.gpus - 1}]\n")
        self.configuration.write_text(CONFIGURATION.format(host=host, address=ADDRESS, place=self.place, last=self.nodes - 1,
                                                           port=17000 + self.nodes - 1, cpus=self.cpus, memory=self.memory, gpus=self.gpus,
                                                           proctrack=self.proctrack, task=self.task))
        munge = [f"--{name}={self.place}/munge.{name.split('-')[0]}" for name in ("socket", "pid-file", "log-file", "seed-file")]
        self.spawn("munged", "--foreground", "--force", f"--key-file={key}", *munge)
        until(lambda: (self.place / "munge.socket").exists())
        self.spawn("slurmctld", "-D", "-f", self.configuration)
        for number in range(self.nodes):
            self.spawn("slurmd", "-D", "-f", self.configuration, "-N", f"n{number}")
        until(lambda: self.slurm("sinfo", "--noheader", "--format=%D %t").stdout.split() == [str(self.nodes), "idle"])

    def make_gpus(self):
        """Makes the device files; returns the path that all begin with."""
        for number in range(self.gpus):
            os.mknod(self.place / f"gpu{number}", 0o600 | stat.S_IFCHR, os.makedev(195, number))
        return self.place / "gpu"

    def log_in(self, more=""):
        """What a login of the user sets, and a job without the variables of its caller."""
        (self.place / "profile").write_text(f"export PATH={self.place}/bin:/usr/local/bin:/usr/bin:/bin {more}\n")
        if not os.path.samefile(self.place / "profile", "/etc/profile"):
            mount(self.place / "profile", "/etc/profile")

    def spawn(self, *words):
        environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.configuration)}
        with (self.place / f"{words[0]}-{len(self.running)}.out").open("w") as output:
            self.running.append(subprocess.Popen([str(word) for word in words], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                                 env=environment))

    def stop(self):
        # A controller that is asked to end waits for answers of nodes; nothing reads its state again.
        for process in reversed(self.running):
            process.kill()
        for process in self.running:
            process.wait(10)

    def logs(self):
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in sorted([*self.place.glob("*.out"), *self.place.glob("*.log")]))

    def environment(self, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "USER": self.account.name, "JOBC_COLOR": "never",
                "SLURM_CONF": str(self.configuration), **more}

    def user(self, *words, cwd=None, seconds=SECONDS, **environment):
        """Runs a command as the user."""
        return subprocess.run([*self.account.prefix(), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=self.environment(**environment), cwd=cwd or self.home, timeout=seconds, check=False)

    slurm = user

    def write(self, path, text, mode=0o644):
        """A file of the user."""
        path = self.home / path
        for parent in [*reversed(path.relative_to(self.home).parents)][1:]:
            directory = self.home / parent
            if not directory.exists():
                directory.mkdir()
                os.chown(directory, self.account.uid, self.account.gid)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.account.uid, self.account.gid)
        return path

    def build(self, name, job, target="container: none", words=(), backends="[slurm]", more=""):
        """Builds a job file for the cluster; returns the directory with the scripts."""
        self.write(f"{name}/job.yaml", job)
        if "jobc:" not in target.replace("container: jobc", ""):
            # `jobc submit` would put it there.
            target += f", jobc: {self.program}"
        self.write(f"{name}/targets.yaml", f"version: 1\ntargets:\n  cluster:\n    backends: {backends}\n    slurm: {{{target}}}\n{more}")
        built = self.user(self.program, "build", "--target", "cluster", *words, cwd=self.home / name)
        if built.returncode:
            raise ValueError(f"build: exit {built.returncode}\n{built.stdout}{built.stderr}")
        return sorted((self.home / name / "out").glob("*/cluster/slurm"))[0]

    def submit(self, directory, script="job.sbatch", *options):
        """Submits a script and returns the number of its job; `logs_of` has the output of each task."""
        role = re.search(r"^(?:exec )?srun --job-name=(\S+)", (directory / script).read_text(), re.MULTILINE)
        logs = directory.parent.with_name("cluster.slurm") / "logs"
        if role:
            self.user("mkdir", "-p", logs)
        arguments = [f"--output={logs}/%j.{role[1]}-%t.log", "--open-mode=append"] if role else []
        done = self.user("sbatch", "--parsable", *options, script, *arguments, cwd=directory)
        if done.returncode:
            raise ValueError(f"sbatch: {done.stderr}")
        return done.stdout.strip()

    def show(self, job):
        """What Slurm says of a job, by field; of the last one of an array."""
        text = self.user("scontrol", "show", "job", "--oneliner", job).stdout.strip().splitlines()
        return dict(re.findall(r"(\S+?)=(\S*)", text[-1])) if text else {}

    def states(self, job):
        """The states of a job, or of all jobs of an array."""
        lines = self.user("scontrol", "show", "job", "--oneliner", job).stdout.splitlines()
        return [re.search(r" JobState=(\S+)", line)[1] for line in lines if " JobState=" in line]

    def ends(self, job, seconds=SECONDS):
        """Waits for the end of a job; returns its state."""
        final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
        with contextlib.suppress(TimeoutError):
            until(lambda: all(state in final for state in self.states(job)), seconds)
        states = self.states(job)
        if not all(state in final for state in states):
            raise TimeoutError(f"job {job} does not end: {self.show(job)}\n{self.output(job)}")
        return states[0] if len(set(states)) == 1 else sorted(states)

    def logs_of(self, directory, job):
        """The logs of the tasks of a job, by name."""
        base = directory.parent.with_name("cluster.slurm")
        paths = [*base.glob(f"jobc-{job}/logs/*.log"), *base.glob(f"logs/{job}.*.log")]
        found = {path.stem.removeprefix(f"{job}."): path.read_text(errors="replace") for path in sorted(paths)}
        records = sorted(base.glob(f"jobc-{job}/records/*/logs/*/*.log"))
        return found | {path.parent.name: text_of(path) for path in records}

    def output(self, job):
        """What the scripts and tasks of a job printed."""
        paths = [*self.home.glob(f"*/out/*/cluster-{job}.out"), *self.home.glob(f"*/out/*/cluster.slurm/jobc-{job}/logs/*.log"),
                 *self.home.glob(f"*/out/*/cluster.slurm/logs/{job}.*.log"),
                 *self.home.glob(f"*/out/*/cluster.slurm/jobc-{job}/records/*/logs/*/*.log")]
        return "".join(f"--- {path.name}\n{text_of(path)}" for path in sorted(paths))


def text_of(path):
    """The output in a file; jobc's own have the time, the stream and the attempt before each line."""
    text = path.read_text(errors="replace")
    return re.sub(r"^\S+Z std(?:out|err) [FP] \d+ ", "", text, flags=re.MULTILINE) if "records" in path.parts else text


def mount(source, target):
    subprocess.run(["mount", "--no-mtab", "--bind", source, target], check=True)


def until(done, seconds=30):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("it took too long")
        time.sleep(0.1)


@contextlib.contextmanager
def cluster(kind=Cluster):
    """A cluster with an unprivileged user, in the namespaces of the test; skips the test where it cannot be."""
    for name in ("sbatch", "srun", "slurmctld", "slurmd", "munged", "scontrol"):
        needs.tool(name)
    with scratch() as directory:
        running = kind(directory, copy_program(directory), user.without_range())
        try:
            running.start()
            yield running
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{running.logs()}") from None
        finally:
            running.stop()
