"""Compares the models of all combinations, and keeps the best."""

import json
import sys
from pathlib import Path

runs = Path(sys.argv[1])
models = [(json.loads(path.read_text())["loss"], path.parent.name) for path in runs.glob("*/model.json")]
loss, name = min(models)
print(f"the best of {len(models)} is {name}: loss {loss:.5f}")
(runs / "best.json").write_text(json.dumps({"combination": name, "loss": loss}))
