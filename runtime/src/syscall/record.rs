//! A double of the kernel that writes down every call.
