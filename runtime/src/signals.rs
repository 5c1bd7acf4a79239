//! Signals: passed on to the container, and waited for.
