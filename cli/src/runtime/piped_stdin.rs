//! Whether our stdin is something that a command at a prompt would read.

use rustix::fs::{FileType, SeekFrom, Stat, fstat, seek};
use rustix::stdio::stdin;

/// Whether stdin is a pipe, a socket, or a file of which nothing was read.
pub(crate) fn has_piped_stdin() -> bool {
    fstat(stdin()).is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
            || is_unread_file(&stat)
    })
}

/// Whether stdin is a file of which nothing was read. A file at a later place is read by the shell that runs us.
pub(crate) fn is_unread_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_size > 0
        && seek(stdin(), SeekFrom::Current(0)) == Ok(0)
}
