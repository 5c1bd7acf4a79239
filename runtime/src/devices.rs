//! Device nodes under /dev.
