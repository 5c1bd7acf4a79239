"""Makes points of a noisy line and writes them as two shards."""

import argparse
import json
import random
from pathlib import Path

SHARDS = 2

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--samples", type=int, required=True)
parser.add_argument("directory", type=Path)
options = parser.parse_args()

random.seed(0)
points = [(x, 3 * x + 1 + random.gauss(0, 0.1)) for x in (random.uniform(-1, 1) for _ in range(options.samples))]
options.directory.mkdir(parents=True, exist_ok=True)
for shard in range(SHARDS):
    (options.directory / f"{shard}.json").write_text(json.dumps(points[shard::SHARDS]))
print(f"wrote {len(points)} points in {SHARDS} shards")
