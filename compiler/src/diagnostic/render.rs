//! Ways to show diagnostics, one a file.
