//! A container's life: created, running, stopped, deleted.
