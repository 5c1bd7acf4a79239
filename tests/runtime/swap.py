#!/usr/bin/env python3
"""Exchanges two paths as fast as it can until its standard input ends: `swap.py ONE TWO`; prints how often."""

import ctypes
import select
import sys

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def main():
    one, two = (word.encode() for word in sys.argv[1:3])
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    times = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(500):
            times += rename(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE) == 0
    print(times)


main()
