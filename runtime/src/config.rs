//! Reads config.json, sees what it does not know, and refuses what it cannot keep.
