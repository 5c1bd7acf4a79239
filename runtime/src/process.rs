//! Makes the container's first process and carries the operations out in it.
