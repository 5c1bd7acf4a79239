//! Namespaces: which are new, which are joined.
