#!/usr/bin/env python3
"""Judges parts of the language with real tasks: another role's port, a directory of the job.

With `--user range` or `--user single` everything is done as an unprivileged user.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from alone import jobs_of, problems  # noqa: E402
from course import SERVE, run  # noqa: E402
from judge import Judge  # noqa: E402


def main():
    judge = Judge("language", __doc__)
    with jobs_of(judge) as jobs:
        for case in (ports, job_volume):
            if judge.wants(case.__name__):
                judge.judge(case.__name__, problems(case, jobs))
    judge.end()


def logs(jobs, name, task):
    return jobs.call("logs", name, task).stdout


def ports(jobs):
    """A role reaches each instance of another by the port that it has there, whatever number was free."""
    ask = "python3 -c \"import urllib.request as r; print(r.urlopen('http://$1').read().decode().strip())\""
    for network in ("host", "job"):
        name = f"judged-ports-{network}"
        url = "${{ hosts.web[%d] }}:${{ ports.web.http[%d] }}/number"
        roles = {
            "web": {"run": f"cd /tmp; echo answer $JOBC_INDEX >number; {SERVE}", "instances": 2, "resources": {"ports": {"http": "auto"}},
                    "ready": {"port": "http", "every": "1s"}},
            "client": {"run": "\n".join(ask.replace("$1", url % (n, n)) for n in (0, 1)), "needs": {"web": "ready"},
                       "completion": {"min_succeeded": 1}},
        }
        run(jobs, name, roles, 0, "succeeded: .*", network=network)
        said = logs(jobs, name, "client-0")
        if "answer 0" not in said or "answer 1" not in said:
            yield f"{network}: {said}"


def job_volume(jobs):
    """A role finds what another wrote, also at a later attempt of the job, and nothing is left of it; a second job begins empty."""
    prepare = "test -e /work/first || { begin=$(ls /work | wc -l); echo $begin >/work/begin; echo 7 >/work/first; exit 1; }; echo again >>/work/first"
    roles = {
        "prepare": {"run": prepare, "retry": {"max": 1, "scope": "job"}},
        "train": {"run": "cat /data/first /data/begin; ! (echo x >/data/y) 2>/dev/null", "needs": ["prepare"],
                  "data": {"work": {"mount": "/data", "writable": False}}},
    }
    data = {"work": {"source": "job:", "mount": "/work", "writable": True}}
    for _ in range(2):
        run(jobs, "judged-volume", roles, 0, "succeeded: all 2 tasks ended well", data=data)
        said = logs(jobs, "judged-volume", "train-0").split()
        if said[-3:] != ["7", "again", "0"]:
            yield f"the second role saw {said}"
        left = [path for place in (jobs.home, Path("/run/jobc")) for path in place.rglob("fetched") if any(path.rglob("first"))]
        yield from (f"{path} is left" for path in left)


if __name__ == "__main__":
    main()
