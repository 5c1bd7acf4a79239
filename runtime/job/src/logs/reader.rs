//! Reading several tasks' logs as one, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::PathBuf;

use super::filter::LineFilter;
use super::last_state::LastStates;
use super::source::LogSource;
use jobc_place::logs::{Line, Stream};

/// Several tasks' logs, read as one while they may be written.
///
/// Lines come in the order of their times, and those of one task in the order in which they were printed, even if the
/// clock jumped. It holds a block of 128 KiB of each task that has unread lines.
#[derive(Debug)]
pub struct Reader {
    sources: Vec<LogSource>,
    filter: LineFilter,
    started: bool,
    /// Of the last lines, what was there when reading began.
    last: Option<LastStates>,
}

/// Maximum lines of one [`Reader::read`].
const MAX_LINES_PER_READ: usize = 10_000;

impl Reader {
    /// The logs in these directories ([`crate::directory::Directory::logs`]), which need not be there yet.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>, choice: LineFilter) -> Self {
        Self {
            sources: directories.into_iter().map(LogSource::new).collect(),
            last: choice.tail.map(|_| LastStates::default()),
            filter: choice,
            started: false,
        }
    }

    /// Passes on new lines, each with the number of its directory. Returns whether there may be more at once: it
    /// returns in between, so that a caller that follows a fast log can do other work.
    ///
    /// Of the last lines ([`LineFilter::tail`]) each comes whole, and of a progress bar what it drew last.
    ///
    /// Lines of [`Stream::Jobc`] are remarks: where lines were lost, and where parts of the log were deleted before
    /// they were read.
    ///
    /// # Errors
    ///
    /// Those of the files, and of `each`; the line it failed at is passed on again.
    pub fn read(&mut self, each: &mut dyn FnMut(usize, &Line<'_>) -> io::Result<()>) -> io::Result<bool> {
        if !std::mem::replace(&mut self.started, true) {
            for source in &mut self.sources {
                source.seek_to_start(&self.filter)?;
            }
        }
        let mut heads = BinaryHeap::new();
        for (number, source) in self.sources.iter_mut().enumerate() {
            if source.find_next(&self.filter)? {
                heads.extend(source.line().map(|(_, line)| Reverse((line.time.to_owned(), number))));
            }
        }
        let mut passed = 0;
        while let Some(Reverse((_, number))) = heads.pop() {
            let source = &mut self.sources[number];
            while let Some((remark, line)) = source.line() {
                if heads.peek().is_some_and(|Reverse((time, _))| line.time > time.as_str()) {
                    heads.push(Reverse((line.time.to_owned(), number)));
                    break;
                }
                if let Some(text) = remark {
                    let text = text.as_bytes();
                    each(number, &Line { stream: Stream::Jobc, ends: true, attempt: 0, text, ..line })?;
                }
                match &mut self.last {
                    Some(last) => last.pass(number, &line, each)?,
                    None => each(number, &line)?,
                }
                source.advance();
                passed += 1;
                if passed >= MAX_LINES_PER_READ {
                    return Ok(true);
                }
                if !source.find_next(&self.filter)? {
                    break;
                }
            }
        }
        self.last.take().map_or(Ok(()), |last| last.finish(each))?;
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
