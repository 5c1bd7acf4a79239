//! Socket activation (sd_listen_fds(3)).

/// How many descriptors that socket activation hands over; they stay open besides those asked for.
pub(crate) fn listened_for() -> u32 {
    std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}
