"""The rows of `tests/gpu/run`: functions of a `Host` that return what was seen. Their first lines name what they measure."""

from rows import images, jobs, shares, start, work

# In the order of the table: what fails early explains what fails later.
ROWS = [*start.ROWS, *work.ROWS, *shares.ROWS, *jobs.ROWS, *images.ROWS]
