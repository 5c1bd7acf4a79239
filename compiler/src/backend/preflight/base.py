import sys

# What lies in the working directory is not meant.
sys.path = [path for path in sys.path if path]
import json, os, socket, time

check, numbers = sys.argv[1], sys.argv[2:]

def say(text):
    # One write, so that the lines of tasks do not mix.
    os.write(2, ("jobc: preflight" + text + "\n").encode())

def end(code, text):
    who = "node" if code == 86 else "job"
    place = (check, text, os.environ["jobc_task"], os.environ["jobc_node"], who)
    say(" failed: %s: %s (%s on %s: the %s is at fault)" % place)
    os._exit(code)

def note(text):
    say(": %s: %s" % (check, text))

