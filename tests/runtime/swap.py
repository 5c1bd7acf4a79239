#!/usr/bin/env python3
"""Exchanges two paths as fast as it can until its standard input ends: `swap.py ONE TWO MIN`.

Prints `enough` after MIN exchanges, and the number of exchanges at the end.
"""

import ctypes
import select
import sys

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def main():
    one, two = (word.encode() for word in sys.argv[1:3])
    min_exchanges = int(sys.argv[3])
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    count, reported = 0, False
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(500):
            count += rename(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE) == 0
        if count >= min_exchanges and not reported:
            reported = True
            print("enough", flush=True)
    print(count)


main()
