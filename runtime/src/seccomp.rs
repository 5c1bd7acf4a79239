//! The system-call filter: config.json's profile as a BPF program.
