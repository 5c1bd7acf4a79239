//! User and group ids of a user namespace: a single id, or a range by newuidmap and newgidmap.
