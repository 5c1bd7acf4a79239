#!/usr/bin/env python3
"""Exchanges two paths as fast as it can until its standard input ends: `swap.py ONE TWO ENOUGH`.

Prints `enough` once it has done so ENOUGH times, and how often it was at the end.
"""

import ctypes
import select
import sys

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def main():
    one, two = (word.encode() for word in sys.argv[1:3])
    enough = int(sys.argv[3])
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    times, told = 0, False
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(500):
            times += rename(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE) == 0
        if times >= enough and not told:
            told = True
            print("enough", flush=True)
    print(times)


main()
