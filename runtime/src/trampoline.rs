//! The last step before the user's program: a sealed executable that holds nothing of this one.
