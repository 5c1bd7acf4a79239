//! The full screen: its content, and the keys.

use std::io::{self, Write as _};

use jobc_container::terminal::raw_mode::RawMode;
use jobc_place::job::JobSummary;
use jobc_place::time::{Time, format_duration};
use rustix::stdio::{stdin, stdout};
use rustix::termios::tcgetwinsize;

use super::super::stats::{NO_JOB_RUNS, Row};
use crate::runtime::quantity::{bytes, percent};
use crate::table::{Table, truncate};

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Backspace,
    /// Escape, or Ctrl-C and Ctrl-D, which quit whatever is typed.
    Escape,
    Quit,
    Letter(char),
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of the plan.
    #[default]
    Plan,
    Cpu,
    Memory,
    Traffic,
}

/// The keys of the orders.
const ORDERS: [(char, Order); 4] =
    [('c', Order::Cpu), ('m', Order::Memory), ('i', Order::Traffic), ('p', Order::Plan)];

/// All keys, as `?` shows them.
const KEYS: [[&str; 2]; 10] = [
    ["q, Ctrl-C", "quit"],
    ["Up, Down, k, j", "scroll by one row"],
    ["Page Up, Page Down, b, Space", "scroll by one page"],
    ["/", "show only jobs, tasks and states with the text typed next; Enter keeps it"],
    ["Esc", "clear the filter; without one, quit"],
    ["c", "sort by CPU"],
    ["m", "sort by memory"],
    ["i", "sort by disk traffic"],
    ["p", "sort in the order of the plan"],
    ["?", "show these keys; any key closes them"],
];

/// The contents of the screen.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Each job under what a user calls it.
    jobs: Vec<(String, JobSummary)>,
    rows: Vec<Row>,
    order: Order,
    /// Only rows whose job, task or state has this text.
    filter: String,
    /// Whether keys are added to the filter.
    is_typing: bool,
    /// Whether the keys are shown instead of the tasks.
    shows_keys: bool,
    /// The first visible row.
    first: usize,
    /// The number of visible rows.
    height: usize,
}

impl View {
    /// Adds a sample of the jobs.
    pub(super) fn set_sample(&mut self, jobs: Vec<(String, JobSummary)>, rows: Vec<Row>) {
        (self.jobs, self.rows) = (jobs, rows);
        self.sort();
    }

    /// Handles a key; returns whether it ends the command.
    pub(super) fn handle_key(&mut self, key: Key) -> bool {
        let page = self.height.max(1);
        match key {
            Key::Quit => return true,
            _ if self.shows_keys => self.shows_keys = false,
            Key::Up => self.first = self.first.saturating_sub(1),
            Key::Down => self.first += 1,
            Key::PageUp => self.first = self.first.saturating_sub(page),
            Key::PageDown => self.first += page,
            key if self.is_typing => self.edit_filter(key),
            Key::Escape if self.filter.is_empty() => return true,
            Key::Escape => self.filter.clear(),
            Key::Letter('q' | 'Q') => return true,
            Key::Letter('/') => self.is_typing = true,
            Key::Letter('?') => self.shows_keys = true,
            Key::Letter('k') => self.first = self.first.saturating_sub(1),
            Key::Letter('j') => self.first += 1,
            Key::Letter(' ') => self.first += page,
            Key::Letter('b') => self.first = self.first.saturating_sub(page),
            Key::Letter(letter) => {
                let order = ORDERS.iter().find(|(key, _)| *key == letter);
                if let Some((_, order)) = order {
                    (self.order, self.first) = (*order, 0);
                }
            }
            Key::Enter | Key::Backspace => {}
        }
        self.sort();
        false
    }

    fn edit_filter(&mut self, key: Key) {
        match key {
            Key::Letter(letter) => self.filter.push(letter),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            _ => {
                self.filter.clear();
                self.is_typing = false;
            }
        }
        self.first = 0;
    }

    /// The rows that the filter leaves.
    fn filtered(&self) -> Vec<&Row> {
        let has_text = |row: &&Row| {
            row.job.contains(&self.filter)
                || row.usage.task.to_string().contains(&self.filter)
                || row.usage.state.as_str().contains(&self.filter)
        };
        self.rows.iter().filter(has_text).collect()
    }

    fn sort(&mut self) {
        // Sorting is stable: equal rows stay in the order of the plan, in which each sample lists them.
        match self.order {
            Order::Plan => self.rows.sort_by_key(|row| row.place),
            Order::Cpu => self.rows.sort_by_key(|row| std::cmp::Reverse(row.usage.cpu_millis)),
            Order::Memory => self.rows.sort_by_key(|row| std::cmp::Reverse(row.usage.memory)),
            Order::Traffic => self.rows.sort_by_key(|row| {
                let usage = &row.usage;
                std::cmp::Reverse(usage.read_bytes_per_second.max(usage.written_bytes_per_second))
            }),
        }
    }

    /// The lines for a terminal of that size; only the headings have colors.
    fn lines(&mut self, columns: usize, lines: usize, now: Time) -> Vec<String> {
        let mut out: Vec<String> = heading(&self.jobs, &self.rows, now);
        // Half of the terminal is for tasks, for any number of jobs.
        out.truncate((lines / 2).max(1));
        out.push(String::new());
        if self.shows_keys {
            let width = KEYS.iter().map(|[key, _]| key.len()).max().unwrap_or(0);
            out.extend(KEYS.map(|[key, effect]| format!("{key:width$}  {effect}")));
            out.resize(lines.saturating_sub(1), String::new());
            out.push(format!("\x1b[2m{}\x1b[0m", truncate("any key closes this list", columns)));
            return out;
        }
        let mut table =
            Table::new(["JOB", "TASK", "STATE", "CPU", "MEMORY", "LIMIT", "READ", "WRITTEN", "PIDS", "GPU"]);
        let filtered = self.filtered();
        let count = filtered.len();
        for row in filtered {
            let [job, task, rest @ ..] = row.cells();
            table.row([job, task, row.usage.state.as_str().to_owned()].into_iter().chain(rest));
        }
        let text = table.render(Some(columns));
        let mut rows = text.lines();
        out.push(format!("\x1b[7m{:columns$}\x1b[0m", rows.next().unwrap_or_default()));
        self.height = lines.saturating_sub(out.len() + 1);
        self.first = self.first.min(count.saturating_sub(self.height));
        out.extend(rows.skip(self.first).take(self.height).map(str::to_owned));
        out.resize(lines.saturating_sub(1), String::new());
        out.push(format!("\x1b[2m{}\x1b[0m", truncate(&self.footer(count), columns)));
        out
    }

    /// The last line, below that number of rows.
    fn footer(&self, count: usize) -> String {
        if self.is_typing {
            return format!("filter: {}_  Enter keeps it  Esc clears it", self.filter);
        }
        let last = (self.first + self.height).min(count);
        let range = if count > self.height {
            format!("{}-{last} of {count}  ", self.first + 1)
        } else {
            String::new()
        };
        let filter = if self.filter.is_empty() {
            "/ filter".to_owned()
        } else {
            format!("filter: {} ({count} of {})", self.filter, self.rows.len())
        };
        format!("{range}? keys  q quit  {filter}  sort: c CPU  m memory  i traffic  p plan")
    }
}

/// One line for each job: its state, how long it has run, its tasks and what they use.
pub(crate) fn heading(jobs: &[(String, JobSummary)], rows: &[Row], now: Time) -> Vec<String> {
    if jobs.is_empty() {
        return vec![NO_JOB_RUNS.to_owned()];
    }
    let mut lines = vec![];
    for (id, job) in jobs {
        let rows = rows.iter().filter(|row| row.job == *id);
        let cpu: u64 = rows.clone().filter_map(|row| row.usage.cpu_millis).sum();
        let memory: u64 = rows.filter_map(|row| row.usage.memory).sum();
        let ran = job.started.map(|started| format_duration(job.ended.unwrap_or(now).since(started)));
        let progress = job.progress.as_ref().map(|progress| format!("  {}", progress.text()));
        let end = job.end.as_ref().map(|end| format!("  {}", end.explanation));
        lines.push(format!(
            "{}  {}  {}  {}  CPU {}  memory {}{}{}",
            id,
            job.state.as_str(),
            ran.unwrap_or_default(),
            job.tasks_text(),
            percent(cpu),
            bytes(memory),
            progress.unwrap_or_default(),
            end.unwrap_or_default()
        ));
    }
    lines
}

/// The terminal while `top` uses it; restored on drop.
pub(super) struct Screen {
    _raw: Option<RawMode>,
}

/// Switches to the alternate screen without a cursor, and back (xterm's control sequences, `?1049` and `?25`).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

impl Screen {
    pub(super) fn enter() -> Self {
        let raw = RawMode::enter();
        let _ = write_stdout(ENTER);
        Self { _raw: raw }
    }

    /// Draws everything over the old content, so that nothing flickers.
    pub(super) fn draw(view: &mut View) -> io::Result<()> {
        let size = tcgetwinsize(stdout()).ok();
        let columns = size.map_or(80, |size| usize::from(size.ws_col).max(20));
        let height = size.map_or(24, |size| usize::from(size.ws_row).max(4));
        let lines = view.lines(columns, height, Time::now());
        let mut text = String::from("\x1b[H");
        for (index, line) in lines.iter().enumerate() {
            let end = if index + 1 == lines.len() { "" } else { "\r\n" };
            // A colored heading is already as wide as the terminal.
            let line = if line.starts_with('\x1b') { line.clone() } else { truncate(line, columns) };
            text += &format!("{line}\x1b[K{end}");
        }
        write_stdout(&text)
    }

    /// The pressed keys; none if stdin is closed.
    pub(super) fn keys() -> Option<Vec<Key>> {
        let mut buffer = [0; 64];
        match rustix::io::read(stdin(), &mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(length) => Some(keys(&buffer[..length])),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write_stdout(LEAVE);
    }
}

fn write_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Parses the input of a terminal: one letter per key, sequences for the arrows.
fn keys(mut bytes: &[u8]) -> Vec<Key> {
    const SEQUENCES: [(&[u8], Key); 6] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
    ];
    let mut keys = vec![];
    while let Some((&first, rest)) = bytes.split_first() {
        if let Some((sequence, key)) = SEQUENCES.iter().find(|(sequence, _)| bytes.starts_with(sequence)) {
            keys.push(*key);
            bytes = &bytes[sequence.len()..];
            continue;
        }
        if bytes.starts_with(b"\x1b[") {
            // The sequence of another key ends with a letter or `~`.
            let end = rest[1..].iter().position(|byte| (0x40..=0x7e).contains(byte));
            bytes = end.map_or(&[], |end| &rest[end + 2..]);
            continue;
        }
        bytes = rest;
        keys.extend(match first {
            0x03 | 0x04 => Some(Key::Quit),
            0x1b => Some(Key::Escape),
            b'\r' | b'\n' => Some(Key::Enter),
            0x08 | 0x7f => Some(Key::Backspace),
            b' '..=b'~' => Some(Key::Letter(char::from(first))),
            _ => None,
        });
    }
    keys
}

#[cfg(test)]
mod tests;
