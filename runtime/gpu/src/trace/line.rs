//! The lines of strace, joined: a call that another process interrupts takes two lines.

use std::collections::BTreeMap;

/// Takes lines and gives whole calls.
#[derive(Debug, Default)]
pub(super) struct LineJoiner {
    /// Calls that processes have begun.
    unfinished: BTreeMap<u32, String>,
}

/// A call that has returned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// The call's name.
    pub(super) name: String,
    /// Its arguments, as strace writes them.
    pub(super) arguments: String,
    /// Its return value, as strace prints it: `3</dev/nvidia0>`, `-1 ENXIO (…)`.
    pub(super) result: String,
    /// Seconds in the kernel, if strace reports them.
    pub(super) seconds: Option<f64>,
}

impl LineJoiner {
    /// The call that a line completes.
    pub(super) fn push(&mut self, line: &str) -> Option<Call> {
        let (pid, text) = process(line);
        if let Some(begin) = text.strip_suffix("<unfinished ...>") {
            self.unfinished.insert(pid, begin.trim_end().to_owned());
            return None;
        }
        if let Some(rest) = text.strip_prefix("<... ") {
            let (_, rest) = rest.split_once(" resumed>")?;
            return parse(&(self.unfinished.remove(&pid)? + rest));
        }
        parse(text)
    }
}

/// The process of a line, 0 if it is not given, and the rest.
fn process(line: &str) -> (u32, &str) {
    let text = line.strip_prefix("[pid").and_then(|rest| rest.split_once(']'));
    match text.and_then(|(pid, rest)| Some((pid.trim().parse().ok()?, rest))) {
        Some((pid, rest)) => (pid, rest.trim_start()),
        None => (0, line),
    }
}

/// A whole call: `ioctl(3</dev/nvidia0>, …) = 0 <0.000055>`.
fn parse(text: &str) -> Option<Call> {
    let (call, result) = text.rsplit_once(" = ")?;
    let (name, arguments) = call.trim_end().strip_suffix(')')?.split_once('(')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (result, seconds) = match result.rsplit_once(" <") {
        Some((result, time)) => (result, time.strip_suffix('>').and_then(|time| time.parse().ok())),
        None => (result, None),
    };
    is_name.then(|| Call {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        result: result.trim().to_owned(),
        seconds,
    })
}

impl Call {
    /// Whether it failed.
    pub(super) fn failed(&self) -> bool {
        self.result.starts_with("-1 ")
    }

    /// The file of the call: the opened file, or the name of a file descriptor among its arguments.
    pub(super) fn file(&self) -> Option<String> {
        if self.name.starts_with("open") {
            // A name that is a link is replaced by the file that was opened.
            return descriptor_file(&self.result).or_else(|| quoted_name(&self.arguments));
        }
        self.arguments.split(", ").find_map(descriptor_file)
    }
}

/// The file of a file descriptor: `3</dev/nvidia0>`, with `-yy` `3</dev/nvidia0<char 195:0>>`.
fn descriptor_file(text: &str) -> Option<String> {
    let (number, rest) = text.split_once('<')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let end = rest.find(['<', '>'])?;
    is_number.then(|| rest[..end].to_owned())
}

/// The first name in quotes.
fn quoted_name(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<(String, Option<String>, bool, Option<f64>)> {
        let mut lines = LineJoiner::default();
        let calls = text.lines().filter_map(|line| lines.push(line.trim()));
        calls.map(|call| (call.name.clone(), call.file(), call.failed(), call.seconds)).collect()
    }

    #[test]
    fn interrupted_calls_are_put_together() {
        let found = calls(
            r"[pid 29621] ioctl(5</dev/nvidia0>, _IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20) <unfinished ...>
              [pid 29620] ioctl(4</dev/nvidiactl>, _IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2b, 0x30) <unfinished ...>
              [pid 29621] <... ioctl resumed>, 0x7ffd) = 0 <0.000055>
              [pid     7] <... ioctl resumed>, 0x7ffd) = 0 <0.000055>
              [pid 29620] <... ioctl resumed>, 0)     = -1 EINVAL (Invalid argument) <0.000054>",
        );
        let text = |name: &str, file: &str, failed, seconds| {
            (name.to_owned(), Some(file.to_owned()), failed, Some(seconds))
        };
        assert_eq!(
            found,
            [
                text("ioctl", "/dev/nvidia0", false, 0.000_055),
                text("ioctl", "/dev/nvidiactl", true, 0.000_054)
            ]
        );
    }

    #[test]
    fn the_file_is_what_was_opened_mapped_or_requested() {
        let found = calls(
            r#"openat(AT_FDCWD</work>, "/dev/nvidia1", O_RDWR|O_CLOEXEC) = 3</dev/nvidia1> <0.000100>
               openat(AT_FDCWD</work>, "/dev/nvidia2", O_RDWR) = -1 ENXIO (No such device or address) <0.000010>
               open("gpu", O_RDWR) = 4</dev/nvidia3<char 195:3>> <0.5>
               mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5</dev/nvidia0>, 0) = 0x7f0000000000 <0.000010>
               mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000 <0.000010>
               ioctl(2</dev/pts/0<char 136:0>>, TCGETS, {c_iflag=ICRNL, c_cc="a = b"}) = 0 <0.000003>
               ioctl(3</dev/kfd>, 0x1) = ? <unavailable>"#,
        );
        let files: Vec<_> =
            found.iter().map(|(_, file, failed, _)| (file.as_deref().unwrap_or("-"), *failed)).collect();
        assert_eq!(
            files,
            [
                ("/dev/nvidia1", false),
                ("/dev/nvidia2", true),
                ("/dev/nvidia3", false),
                ("/dev/nvidia0", false),
                ("-", false),
                ("/dev/pts/0", false),
                ("/dev/kfd", false)
            ]
        );
        assert_eq!(found[6].3, None);
    }

    #[test]
    fn other_lines_are_ignored() {
        for text in [
            "",
            "strace: Process 12 attached",
            "+++ exited with 0 +++",
            "[pid 3] +++ killed by SIGKILL +++",
            "a b(c) = 0",
            "[pid x] <... ioctl resumed>) = 0",
            "ioctl(",
            ") = 0",
        ] {
            assert_eq!(calls(text), [], "{text}");
        }
    }
}
