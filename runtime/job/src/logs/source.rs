//! Reading one task's log, part after part, while it may be written.

use std::fs::File;
use std::io::{self, BufRead as _, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use super::backward::BackwardReader;
use super::filter::LineFilter;
use super::line::parse;
use super::part;
use jobc_place::logs::{Line, Stream};
use jobc_schema::plural;

/// How much is read at once; no line of a part is as long.
const BLOCK: usize = 128 << 10;

/// One task's log, read forwards.
#[derive(Debug, Default)]
pub(super) struct LogSource {
    directory: PathBuf,
    /// The part that is read.
    part: Option<OpenPart>,
    /// The next part, found while the end of this one still had to be read again.
    next: Option<OpenPart>,
    buffer: Vec<u8>,
    /// The part of the buffer that was not passed on yet.
    unread: Range<usize>,
    /// Where that begins in the part.
    offset: u64,
    /// The length of the line that [`Self::find_next`] has found, without its end.
    found: Option<usize>,
    /// The remark before it: lines are missing here.
    remark: Option<String>,
}

#[derive(Debug)]
struct OpenPart {
    number: u64,
    file: File,
}

impl LogSource {
    /// The log in a directory, which need not be there yet.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, ..Self::default() }
    }

    /// Seeks to the first selected line.
    pub(super) fn seek_to_start(&mut self, choice: &LineFilter) -> io::Result<()> {
        let numbers = part::list(&self.directory);
        if let Some(count) = choice.tail {
            let mut left = count;
            for &number in numbers.iter().rev() {
                let Some(open) = self.open(number)? else { break };
                self.offset =
                    BackwardReader::new(&open.file)?.last(&mut left, |line| choice.matches(line))?;
                self.part = Some(open);
                if self.offset > 0 || left == 0 {
                    break;
                }
            }
            return Ok(());
        }
        let mut first = 0;
        if let Some(since) = &choice.since {
            // All of a part is older than the beginning of the next.
            while let Some(&number) = numbers.get(first + 1) {
                let beginning = self.open(number)?.map(|open| time_of_first(&open.file)).transpose()?;
                if beginning.flatten().is_none_or(|time| time >= *since) {
                    break;
                }
                first += 1;
            }
        } else if numbers.first().is_some_and(|&number| number > 1) {
            self.remark = Some("the log starts here, older lines were deleted".to_owned());
        }
        self.part = numbers.get(first).map(|&number| self.open(number)).transpose()?.flatten();
        Ok(())
    }

    /// Finds the next line that is wanted; false if there is none now.
    pub(super) fn find_next(&mut self, choice: &LineFilter) -> io::Result<bool> {
        if self.found.is_some() {
            return Ok(true);
        }
        loop {
            let unread = &self.buffer[self.unread.clone()];
            let mut rest = unread;
            let length = rest.skip_until(b'\n').unwrap_or(0);
            let Some((b'\n', line)) = unread[..length].split_last() else {
                if self.refill()? {
                    continue;
                }
                return Ok(false);
            };
            if parse(line).is_some_and(|line| choice.matches(&line)) {
                self.found = Some(line.len());
                return Ok(true);
            }
            self.skip(length);
        }
    }

    /// The line that was found, and the remark before it.
    pub(super) fn line(&self) -> Option<(Option<&str>, Line<'_>)> {
        let text = &self.buffer[self.unread.start..self.unread.start + self.found?];
        Some((self.remark.as_deref(), parse(text)?))
    }

    /// Goes on to the next line.
    pub(super) fn advance(&mut self) {
        if let Some(length) = self.found.take() {
            self.remark = None;
            self.skip(length + 1);
        }
    }

    fn skip(&mut self, length: usize) {
        self.unread.start += length;
        self.offset += length as u64;
    }

    /// Reads more; false if there is nothing new. The beginning of an incomplete line is dropped and read again later,
    /// because the writer may remove it.
    fn refill(&mut self) -> io::Result<bool> {
        let Some(open) = &self.part else {
            let Some(&first) = part::list(&self.directory).first() else { return Ok(false) };
            self.part = self.open(first)?;
            return Ok(self.part.is_some());
        };
        let have = self.unread.len();
        if open.file.metadata()?.len() > self.offset + have as u64 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.buffer.resize(BLOCK, 0);
            // A line as long as a block is not one that the supervisor wrote.
            let kept = if have == BLOCK { 0 } else { have };
            self.offset += (have - kept) as u64;
            let read = read_at(&open.file, &mut self.buffer[kept..], self.offset + kept as u64)?;
            self.unread = 0..kept + read;
            if read > 0 {
                return Ok(true);
            }
        }
        // Most tasks are quiet most of the time: they hold no memory.
        self.buffer = vec![];
        self.unread = 0..0;
        if let Some(next) = self.next.take() {
            let missed = next.number - self.part.as_ref().map_or(0, |part| part.number) - 1;
            if missed > 0 {
                let parts = plural(missed, "part");
                self.remark =
                    Some(format!("lines are missing here: {parts} of the log, deleted before the read"));
            }
            (self.part, self.offset) = (Some(next), 0);
            return Ok(true);
        }
        // What was written between the last check of the end and the next part's start is read first.
        self.next = self.next_part()?;
        Ok(self.next.is_some())
    }

    /// The part after the current one, if there is one.
    fn next_part(&self) -> io::Result<Option<OpenPart>> {
        let Some(part) = &self.part else { return Ok(None) };
        if let Some(next) = self.open(part.number + 1)? {
            return Ok(Some(next));
        }
        // Parts go in order, so the next can only be gone when this one is.
        if part.file.metadata()?.nlink() > 0 {
            return Ok(None);
        }
        for number in part::list(&self.directory).into_iter().filter(|&number| number > part.number) {
            if let Some(next) = self.open(number)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn open(&self, number: u64) -> io::Result<Option<OpenPart>> {
        match File::open(part::path(&self.directory, number)) {
            Ok(file) => Ok(Some(OpenPart { number, file })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl LineFilter {
    /// Whether a line is wanted, by its time, its attempt and its stream. Remarks of the supervisor's belong to every attempt.
    fn matches(&self, line: &Line<'_>) -> bool {
        self.since.as_deref().is_none_or(|since| line.time >= since)
            && self.attempt.is_none_or(|attempt| line.attempt == attempt || line.stream == Stream::Jobc)
            && self.stream.is_none_or(|stream| line.stream == stream)
    }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The time of a part's first line.
fn time_of_first(file: &File) -> io::Result<Option<String>> {
    let mut buffer = [0; 128];
    let length = file.read_at(&mut buffer, 0)?;
    Ok(parse(&buffer[..length]).map(|line| line.time.to_owned()))
}
