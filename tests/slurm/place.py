"""A job file and a target of a Slurm cluster, as a user of it has them, and jobc's commands there."""

import json

SETTINGS = "container: none, directory: {directory}"
CONTAINED = "directory: {directory}"
ONE = """\
version: 1
name: {name}
image: host
{more}
roles:
  main:
    instances: {instances}
    resources: {{cpu: 1, memory: 64MiB}}
    run: |
{run}
"""
# What Slurm does not do by itself, so that jobc runs the tasks.
SUPERVISED = "    retry: {max: 1, on_exit_codes: [99]}\n"
# The microseconds of each command, in turn, in each of the rounds that the first argument says.
LOOP = """\
rounds=$1
shift
for ((number = 0; number < rounds; number++)); do
  for command; do
    since=${EPOCHREALTIME/./}
    $command >/dev/null || exit
    printf '%s ' $((${EPOCHREALTIME/./} - since))
  done
  echo
done
"""


def one(name, run, instances=1, more="", role=""):
    run = "\n".join(f"      {line}" for line in run.splitlines())
    return ONE.format(name=name, run=run, instances=instances, more=more) + role


class Place:
    """A directory with a job file and a target, as the user of the cluster."""

    def __init__(self, slurm, name, job, settings="", backends="[slurm]"):
        self.slurm, self.name = slurm, name
        self.directory = slurm.home / "shared"
        self.slurm.write(f"{name}/job.yaml", job)
        settings = SETTINGS.format(directory=self.directory) if not settings else settings.format(directory=self.directory)
        self.slurm.write(f"{name}/targets.yaml", f"version: 1\ntargets:\n  cluster:\n    backends: {backends}\n    slurm: {{{settings}}}\n")
        self.cwd = slurm.home / name

    def jobc(self, *words, code=0, **more):
        """Runs jobc; its output, after a check of the exit code."""
        done = self.slurm.user(self.slurm.program, *words, cwd=self.cwd, **more)
        if code is not None and done.returncode != code:
            raise ValueError(f"jobc {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done if code is None else done.stdout

    def submit(self, *words, **more):
        return self.jobc("submit", "--target", "cluster", *words, **more).strip()

    def inspect(self, handle):
        return json.loads(self.jobc("inspect", "--format", "json", handle))

    def running(self, handle):
        """How many of its tasks run."""
        return sum(task["state"] == "running" for task in self.inspect(handle)["tasks"])

    def run_directory(self, handle):
        return self.directory / "runs" / handle.split("/")[1]

    def queued(self):
        """The Slurm jobs of this job that have not ended, with their comments."""
        lines = self.slurm.user("squeue", "--noheader", "--format=%i %k").stdout.splitlines()
        found = [line.split(" ", 1) for line in lines]
        return [line for line in found if line[1].startswith(f"jobc:{self.name}-")]


def lines_of(text, task):
    """The lines of a task in the output of `jobc logs`, without names; a job with one task has none."""
    if "|" not in text:
        return [line.strip() for line in text.splitlines()]
    found = [line.split("|", 1) for line in text.splitlines() if "|" in line]
    return [line.strip() for name, line in found if name.strip().endswith(task)]
