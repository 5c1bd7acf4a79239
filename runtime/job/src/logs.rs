//! The output of tasks: kept in numbered parts per task, bounded in size, with secrets redacted.
//!
//! A task's directory holds `000001.log`, `000002.log` and so on; the newest few stay ([`Limits`]). A line of a part is
//!
//! ```text
//! 2026-11-21T13:31:53.250123Z stdout F 1 epoch 3: loss 0.213
//! ```
//!
//! the time at which the supervisor read it, in UTC to the microsecond; the stream; `F` if the line ends here and `P`
//! if more of it follows in the stream's next line; the attempt; and the text, byte for byte except redacted secrets,
//! whether it is UTF-8 or not. It is the format of the Kubernetes container runtime interface, with the attempt in the
//! place of additional tags. Lines of the stream `jobc` are the supervisor's own remarks about lines it lost.
//!
//! [`Writer`] writes one task's parts, [`Reader`] merges several tasks' by time, [`Watch`] wakes readers that wait for
//! more.

mod backward;
mod filter;
mod last_state;
mod limits;
mod line;
mod part;
mod reader;
mod redact;
mod source;
mod watch;
mod writer;

use std::io;
use std::path::Path;

pub use filter::LineFilter;
pub use last_state::states;
pub use limits::Limits;
pub use line::parse;
pub use part::{list as part_numbers, path as part_path};
pub use reader::Reader;
pub use redact::Redactor;
pub use watch::Watch;
pub use writer::Writer;

/// The last lines of an attempt, the oldest first, as a terminal shows them.
///
/// # Errors
///
/// The log cannot be read.
pub fn last_lines(directory: &Path, attempt: u32, count: u64) -> io::Result<Vec<String>> {
    let filter = LineFilter::default().attempt(Some(attempt)).tail(Some(count));
    let mut reader = Reader::new([directory.to_owned()], filter);
    let mut found = Vec::new();
    let mut each = |_: usize, line: &jobc_place::logs::Line<'_>| {
        if line.stream != jobc_place::logs::Stream::Jobc {
            found.push(String::from_utf8_lossy(line.text).into_owned());
        }
        Ok(())
    };
    while reader.read(&mut each)? {}
    Ok(found)
}

/// Whether the directory of a task's log holds all that the task printed, and no old part was removed.
pub fn is_whole(directory: &Path) -> bool {
    part::list(directory).first().is_none_or(|first| *first == 1)
}
