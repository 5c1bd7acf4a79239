//! Capabilities of the container's process: what config.json names, as the kernel's bit sets.
