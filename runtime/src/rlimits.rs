//! Resource limits of the process (getrlimit(2)).
