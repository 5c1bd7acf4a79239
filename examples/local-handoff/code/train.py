"""Fits a line to one shard, which another role serves."""

import argparse
import json
import urllib.request

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--shard", type=int, required=True)
parser.add_argument("server")
options = parser.parse_args()

with urllib.request.urlopen(f"{options.server}/{options.shard}.json") as answer:
    points = json.load(answer)
mean_x = sum(x for x, _ in points) / len(points)
mean_y = sum(y for _, y in points) / len(points)
slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
print(f"shard {options.shard}: {len(points)} points, y = {slope:.2f} x + {mean_y - slope * mean_x:.2f}")
