//! Every system call of the new process behind one trait.
