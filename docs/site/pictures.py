#!/usr/bin/env python3
"""Draws the pictures of the terminal in README.md and the guides: `pictures.py PROGRAM`.

Each is what the real program prints, in color and 100 columns wide, as docs/images/NAME.svg. Needs rich (docs/site/requirements.txt).
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[2]
WIDTH = 100
MISTAKES = """\
version: 1
name: resnet
image: "pytorch/pytorch:2.4.0-cuda12.4~runtime"
roles:
  train:
    instances: 4
    resources: {cpu: 8, memory: 32, gpus: 8}
    run: torchrun train.py
"""
# No font from the network: the reader's own monospace one, as in reports (cli/src/runtime/commands/report/report.css).
FONTS = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace'
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
  <style>
    .{unique_id}-matrix {{ font-family: {FONTS}; font-size: {char_height}px;
      line-height: {line_height}px; font-variant-east-asian: full-width; }}
    {styles}
  </style>
  <defs>{lines}</defs>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})">
    {backgrounds}
    <g class="{unique_id}-matrix">{matrix}</g>
  </g>
</svg>
""".replace("{FONTS}", FONTS)


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        shutil.copytree(REPOSITORY / "examples", place / "examples")
        (place / "job.yaml").write_text(MISTAKES)
        draw(program, place, "error", ["check", "job.yaml"])
        draw(program, place, "build", ["build", "examples/torchrun-4x8/job.yaml", "-o", "out"])
        draw(program, place, "run", ["run", "examples/local-dag/job.yaml"])


def draw(program, place, name, arguments):
    """Runs the program and draws what it prints below its command line."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_STATE_HOME": str(place / "state"),
                   "JOBC_COLOR": "always", "COLUMNS": str(WIDTH), "LANG": "C.UTF-8"}
    answer = subprocess.run([program, *arguments], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = answer.stdout.decode().replace(str(place), "~")
    if not text:
        sys.exit(f"`jobc {' '.join(arguments)}` printed nothing")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), f"jobc {' '.join(arguments)}"))
    console.print(Text.from_ansi(text), soft_wrap=True)
    console.save_svg(str(REPOSITORY / f"docs/images/{name}.svg"), title="jobc", code_format=FORMAT, unique_id=name)


if __name__ == "__main__":
    main()
