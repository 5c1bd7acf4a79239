//! The output of tasks.

/// Which output is shown.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    /// Whether to go on until the job has ended.
    pub follow: bool,
    /// Lines from the end of each task's output; all by default.
    pub tail: Option<u64>,
    /// Only lines newer than this time (RFC 3339).
    pub since: Option<String>,
    /// Only this attempt of each task.
    pub attempt: Option<u32>,
    /// Tasks or roles; all by default.
    pub tasks: Vec<String>,
    /// Whether lost output is passed over in silence: numbers are searched in what is left.
    pub is_search: bool,
}

/// Output of a task, or a remark about it.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// A line.
    Line {
        /// The task.
        task: &'a str,
        /// The attempt, from 1.
        attempt: u32,
        /// When it was written (RFC 3339).
        time: &'a str,
        /// The line without its end.
        text: &'a [u8],
    },
    /// Something about the output, such as lines that the server no longer has.
    Remark {
        /// The task.
        task: &'a str,
        /// Its type.
        text: &'a str,
    },
    /// Nothing happened for a while.
    Idle,
}
