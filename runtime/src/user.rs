//! The process's user, groups, umask and home.
