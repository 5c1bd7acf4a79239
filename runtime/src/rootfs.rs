//! The container's root file system: resolution inside it, pivot_root, masked and read-only paths.
