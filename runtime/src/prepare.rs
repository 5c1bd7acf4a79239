//! Turns a bundle into a list of operations, with every string and descriptor ready.
