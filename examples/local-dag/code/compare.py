"""Says which model fits best, and fails where none fits."""

import json
import sys
from pathlib import Path

models = [json.loads(Path(path).read_text()) for path in sys.argv[1:]]
for model in models:
    print(f"degree {model['degree']}: loss {model['loss']:.4f}")
best = min(models, key=lambda model: model["loss"])
Path("/work/best.json").write_text(json.dumps(best))
print(f"the best has degree {best['degree']}")
sys.exit(best["loss"] > 0.1)
