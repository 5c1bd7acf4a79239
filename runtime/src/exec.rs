//! A further process in a running container.
