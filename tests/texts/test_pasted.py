"""Commands and Dockerfiles copied from web pages: what stands after a backslash, and dots for omitted text."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
from runtime import binary  # noqa: E402

NBSP = "\u00a0"
OPENPAI = """{
  "protocolVersion": 2,
  "name": "cifar",
  "type": "job",
  "prerequisites": [{"type": "dockerimage", "name": "torch", "uri": "pytorch/pytorch:2.4.0"}],
  "taskRoles": {
    "worker": {
      "instances": 1,
      "dockerImage": "torch",
      "resourcePerInstance": {"cpu": 4, "memoryMB": 8192, "gpu": 1},
      "commands": ["python train.py \\%s
        --epochs 3"]
    }
  }
}
"""


def jobc(directory, *words):
    return subprocess.run([binary(), *words], cwd=directory, capture_output=True, text=True, timeout=60, check=False)


def fixed(name, text):
    """What `jobc check --fix=unsafe` or its like makes of a file, and what it has said before."""
    with tempfile.TemporaryDirectory(prefix="jobc-texts-") as directory:
        path = Path(directory) / name
        path.write_text(text)
        said = jobc(directory, "check", name).stderr
        again = ""
        for _ in range(5):
            jobc(directory, "check", "--fix", "--unsafe-fixes", name)
            if again == path.read_text():
                break
            again = path.read_text()
        plan = jobc(directory, "plan", "--format", "json", name)
        command = json.loads(plan.stdout) if plan.returncode == 0 else plan.stderr
        return said, path.read_text(), json.dumps(command, ensure_ascii=False)


def test_a_backslash_and_blanks_in_json():
    for blanks in ("", " ", NBSP, NBSP + " "):
        said, text, plan = fixed("job.json", OPENPAI % blanks)
        assert "a backslash at the end of a line is not JSON" in said, (blanks, said)
        assert "python train.py " in plan and "--epochs 3" in plan and NBSP not in plan, (blanks, plan)
        assert "\\\\" not in plan.split("python train.py")[1][:30], (blanks, plan)


def test_a_backslash_and_blanks_in_a_script():
    for blanks, name in ((" ", "space"), (NBSP, "no-break space")):
        job = f"version: 1\nname: x\nimage: a\nroles:\n  main:\n    run: |\n      python t.py \\{blanks}\n        --lr 1\n"
        said, text, _ = fixed("job.yaml", job)
        assert f"a {name} after the backslash ends the command here" in said, said
        assert "python t.py \\\n" in text and NBSP not in text, text


def test_a_no_break_space_in_a_dockerfile():
    with tempfile.TemporaryDirectory(prefix="jobc-texts-") as directory:
        path = Path(directory) / "Dockerfile"
        job = "version: 1\nname: x\nimage: {dockerfile: Dockerfile, context: .}\nroles: {main: {run: a}}\n"
        (Path(directory) / "job.yaml").write_text(job)
        path.write_text(f"FROM debian:12\nRUN apt-get update \\{NBSP}\n && apt-get install -y git\n")
        checked = jobc(directory, "check", "job.yaml")
        assert "the blank U+00A0 after" in checked.stderr and checked.returncode == 1, checked.stderr
        for dots in ("...", "…", "[...]"):
            path.write_text(f"FROM debian:12\n{dots}\nRUN true\n")
            checked = jobc(directory, "check", "job.yaml")
            assert f"`{dots}` is not an instruction, it marks omitted text" in checked.stderr, checked.stderr


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok: {name}")
