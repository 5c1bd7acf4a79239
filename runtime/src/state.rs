//! The state folder: one container a folder, locked, as the OCI state says.
