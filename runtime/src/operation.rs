//! The flat list of steps between the new process and the user's program.
