//! The container's root: a folder, an archive, or the machine's own files.
