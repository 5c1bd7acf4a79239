//! Socket activation (sd_listen_fds(3)).

/// How many file descriptors socket activation passes; they stay open in addition to the requested ones.
pub(crate) fn count_listen_fds() -> u32 {
    std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}
