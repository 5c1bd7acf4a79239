//! Paths of the caller in a command line.

/// A path relative to the current directory, where a shell variable or command names that.
pub(super) fn source(path: &str) -> String {
    for here in ["$PWD", "${PWD}", "$(pwd)", "`pwd`", "$SLURM_SUBMIT_DIR"] {
        if let Some(rest) = path.strip_prefix(here) {
            let rest = rest.trim_start_matches('/');
            return if rest.is_empty() { ".".to_owned() } else { format!("./{rest}") };
        }
    }
    path.to_owned()
}
