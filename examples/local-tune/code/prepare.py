"""Makes points near a line, the same ones each time."""

import json
import random
import sys

random.seed(7)
points = [(x / 100, 3 * x / 100 + 1 + random.gauss(0, 0.1)) for x in range(200)]
random.shuffle(points)
with open(sys.argv[1], "w") as file:
    json.dump({"train": points[:160], "test": points[160:]}, file)
print(f"{len(points)} points")
