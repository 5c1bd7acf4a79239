"""A training loop for the tests of preemption: gradient descent on a line, which saves when it is asked to leave and resumes there."""

TRAIN = r"""
import json, os, random, signal, sys, time
where = os.environ["JOBC_CHECKPOINT_DIR"] + "/state-" + os.environ.get("JOBC_INDEX", "0") + ".json"
state = {"step": 0, "weight": 0.0, "bias": 0.0}
if os.path.exists(where):
    with open(where) as file:
        state = json.load(file)
print("from step", state["step"], "attempt", os.environ.get("JOBC_ATTEMPT"), "resume", repr(os.environ.get("JOBC_RESUME")), flush=True)
asked = []
for name in ("SIGTERM", "SIGUSR2"):
    signal.signal(getattr(signal, name), lambda number, _: asked.append(number))
samples = [(x, 3 * x - 1) for x in (random.Random(7).uniform(-1, 1) for _ in range(64))]

def save():
    with open(where + ".new", "w") as file:
        json.dump(state, file)
    os.replace(where + ".new", where)

while state["step"] < int(os.environ.get("STEPS", 60)):
    x, y = samples[state["step"] % 64]
    error = state["weight"] * x + state["bias"] - y
    state["weight"] -= 0.1 * error * x
    state["bias"] -= 0.1 * error
    state["step"] += 1
    print("step", state["step"], flush=True)
    time.sleep(float(os.environ.get("PACE", 0.05)))
    if asked:
        save()
        print("saved at step", state["step"], flush=True)
        sys.exit(85)
save()
print("done", json.dumps(state), flush=True)
"""


def resumed_at_their_steps(text):
    """Whether each attempt began at the step at which the one before had saved, by the lines of a task; how many there were."""
    saved, attempts = 0, 0
    for line in text.splitlines():
        if "from step" in line:
            begun = int(line.split("from step ")[1].split()[0])
            assert begun == saved, f"from {begun}, not {saved}:\n{text}"
            attempts += 1
        elif "saved at step" in line:
            saved = int(line.rsplit(" ", 1)[1])
    return attempts
