//! What this runtime supports, as the OCI runtime specification's features structure.
