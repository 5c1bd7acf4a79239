"""Tests a batch script of a user: Slurm runs it, and so does `jobc run`, with the same output of each task."""

import re

import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40)]
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=both        # by Slurm and by jobc
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=64M
#SBATCH --time=5
#SBATCH --output=both.out

export GREETING="hello"
srun bash -c 'echo "$GREETING: task $SLURM_PROCID of $SLURM_NTASKS"'
"""
ARRAY = """\
#!/bin/bash
#SBATCH -J squares -a 2-4%1
#SBATCH -c 1 --mem=64M -t 5 -o squares-%a.out
echo "square $((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))"
"""


def lines(text, word):
    """The lines that the script prints, without what jobc says before and behind them."""
    return sorted(match[0] for match in re.finditer(rf"{word}.*", text) if "echo" not in match[0])


@pytest.mark.parametrize(("name", "script", "outputs", "word", "number"), [
    ("both", SCRIPT, ["both.out"], "hello: task", 2), ("squares", ARRAY, [f"squares-{number}.out" for number in (2, 3, 4)], "square", 3),
])
def test_a_script_means_the_same_to_slurm_and_to_jobc(slurm, name, script, outputs, word, number):
    directory = slurm.home / name
    slurm.write(f"{name}/{name}.sbatch", script)
    done = slurm.user("sbatch", "--parsable", f"{name}.sbatch", cwd=directory)
    assert done.returncode == 0, done.stderr
    assert slurm.ends(done.stdout.strip()) == "COMPLETED"
    by_slurm = lines("".join((directory / path).read_text() for path in outputs), word)
    imported = slurm.user(slurm.program, "import", f"{name}.sbatch", "-o", "job.yaml", "--targets", "targets.yaml", cwd=directory)
    assert imported.returncode == 0, imported.stderr
    slurm.write(f"{name}-here/job.yaml", (directory / "job.yaml").read_text())
    ran = slurm.user(slurm.program, "run", "--target", "local", "job.yaml", cwd=slurm.home / f"{name}-here")
    by_jobc = lines(re.sub(r"(?m)^[^|\n]*\| ", "", ran.stdout), word)
    assert ran.returncode == 0 and len(by_slurm) == number and by_jobc == by_slurm, \
        f"{by_slurm} by Slurm, {by_jobc} by jobc\n{ran.stdout}{ran.stderr}"
    # What jobc writes for Slurm is a script that Slurm accepts.
    built = slurm.user(slurm.program, "build", "job.yaml", cwd=directory)
    assert built.returncode == 0, built.stderr
    path, = directory.glob("out/*/cluster/slurm/job.sbatch") if name == "both" else [next(iter(directory.glob("out/**/*.sbatch")))]
    tested = slurm.user("sbatch", "--test-only", path.name, cwd=path.parent)
    assert tested.returncode == 0, tested.stderr
