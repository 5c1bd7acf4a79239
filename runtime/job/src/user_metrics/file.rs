//! A number in a JSON or JSON Lines file that a task writes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde_json::Value;

use jobc_sys::error::describe_io;

/// The keys of what lines count, besides time: the steps, the iterations and the epochs.
pub const COUNT_KEYS: [&[&str]; 3] = [&["step", "global_step"], &["iteration", "iter"], &["epoch"]];

/// Maximum bytes read of a file. Only the last lines of a longer one are read.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Maximum bytes read of a file for all of its values.
const MAX_HISTORY_BYTES: u64 = 64 << 20;

/// A value of a line of a JSON Lines file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileValue {
    /// The value.
    pub value: f64,
    /// The numbers under the keys of [`COUNT_KEYS`].
    pub counts: [Option<f64>; COUNT_KEYS.len()],
    /// The number of the line, if the file was read from its beginning.
    pub line: Option<f64>,
}

/// Reads a number of a file in a volume, without leaving the volume by links.
///
/// # Errors
///
/// Why there is no value, as text.
pub fn read_number(volume: &Path, path: &str, key: &str) -> Result<f64, String> {
    let file = open(volume, path).map_err(|errno| match errno {
        Errno::XDEV | Errno::LOOP => format!("`{path}` leads out of its volume"),
        errno => format!("cannot read `{path}`: {}", jobc_sys::error::describe(errno)),
    })?;
    let text = read_end(file, MAX_FILE_BYTES);
    let text = text.map_err(|error| format!("cannot read `{path}`: {}", describe_io(&error)))?;
    select_number(&text, key).map_err(|why| format!("`{path}`: {why}"))
}

/// Reads all values under a key of a JSON Lines file in a volume, and when the file was changed last; `None` if it cannot
/// be read. Lines without the key are skipped.
pub fn read_values(volume: &Path, path: &str, key: &str) -> Option<(SystemTime, Vec<FileValue>)> {
    let file = open(volume, path).ok()?;
    let status = file.metadata().ok()?;
    let is_whole = status.len() <= MAX_HISTORY_BYTES;
    let text = read_end(file, MAX_HISTORY_BYTES).ok()?;
    let of_line = |(number, line): (u32, &str)| {
        let parsed = parse(line).ok()?;
        let count = |keys: &[&str]| keys.iter().find_map(|key| number_at(&parsed, key).ok());
        Some(FileValue {
            value: number_at(&parsed, key).ok()?,
            counts: COUNT_KEYS.map(count),
            line: is_whole.then_some(f64::from(number)),
        })
    };
    Some((status.modified().ok()?, (1..).zip(text.lines()).filter_map(of_line).collect()))
}

fn open(volume: &Path, path: &str) -> Result<File, Errno> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let volume = rustix::fs::open(volume, directory, Mode::empty())?;
    // A named pipe must not stop the reader.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = rustix::fs::openat2(volume, path, flags, Mode::empty(), resolve)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

/// The text of a file, or its last lines where it is long.
fn read_end(mut file: File, most: u64) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length > most {
        file.seek(SeekFrom::Start(length - most))?;
        file.take(most).read_to_end(&mut bytes)?;
        let begin = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..begin);
    } else {
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number under a key of a JSON text, or of the last line that has it of JSON Lines. Steps of the key are separated
/// by dots; one that is a number is an item of a list. A key that has dots itself is found as well.
///
/// # Errors
///
/// Why there is no value, as text.
pub fn select_number(text: &str, key: &str) -> Result<f64, String> {
    if text.trim().is_empty() {
        return Err("the file is empty".to_owned());
    }
    let error = match parse(text) {
        Ok(whole) => return number_at(&whole, key),
        Err(error) => error,
    };
    // The last line may be only half written.
    let mut why = None;
    for line in text.lines().rev().filter(|line| !line.trim().is_empty()) {
        match parse(line).map_err(|_| error.clone()).and_then(|value| number_at(&value, key)) {
            Ok(number) => return Ok(number),
            Err(reason) => why = Some(reason),
        }
    }
    Err(why.unwrap_or(error))
}

/// JSON, as Python writes it too: with `NaN`, `Infinity` and `-Infinity` for numbers.
fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_str(&quote_words(text).ok_or(error)?))
        .map_err(|error| format!("not JSON: {error}"))
}

/// The text with Python's `NaN` and `Infinity` in quotes; `None` if it has neither.
fn quote_words(text: &str) -> Option<String> {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut found, mut in_string) = (text, false, false);
    while let Some(c) = rest.chars().next() {
        let word = WORDS.into_iter().find(|word| !in_string && rest.starts_with(word));
        let length = match (word, c) {
            (Some(word), _) => {
                found = true;
                out.push_str(&format!("\"{word}\""));
                word.len()
            }
            (None, '\\') if in_string => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..length]);
                length
            }
            (None, c) => {
                in_string ^= c == '"';
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found.then_some(out)
}

fn number_at(value: &Value, key: &str) -> Result<f64, String> {
    let found = find(value, key).ok_or_else(|| {
        let known: Vec<&str> =
            value.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).take(8).collect();
        match &known[..] {
            [] => format!("there is no key `{key}`"),
            known => format!("there is no key `{key}`; it has `{}`", known.join("`, `")),
        }
    })?;
    let number = match found {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| format!("`{key}` is not a number"))
}

fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let step = |name: &str| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    };
    // The longest step first, so that `a.b` may be one key.
    step(key).or_else(|| key.rmatch_indices('.').find_map(|(at, _)| find(step(&key[..at])?, &key[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_key() {
        let text = r#"{"eval": {"loss": 0.5, "per.class": [1, {"f1": 2e-1}]}, "val.acc": "0.75", "bad": NaN, "s": "a \" NaN", "名": 3}"#;
        let of = |key: &str| select_number(text, key);
        assert_eq!(of("eval.loss"), Ok(0.5));
        assert_eq!(of("eval.per.class.1.f1"), Ok(0.2));
        assert_eq!((of("val.acc"), of("名")), (Ok(0.75), Ok(3.0)));
        assert!(of("bad").unwrap().is_nan());
        assert_eq!(of("s"), Err("`s` is not a number".to_owned()));
        assert_eq!(
            of("eval.los"),
            Err("there is no key `eval.los`; it has `eval`, `val.acc`, `bad`, `s`, `名`".to_owned())
        );
        assert_eq!(select_number("[1, 2]", "1"), Ok(2.0));
        assert_eq!(select_number("", "a"), Err("the file is empty".to_owned()));
        assert!(select_number("{a: 1}", "a").unwrap_err().starts_with("not JSON: "));
    }

    #[test]
    fn the_last_line_with_the_key_counts() {
        let lines =
            "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": 0.25}\n{\"step\": 3}\n{\"step\": 4, \"lo";
        assert_eq!(select_number(lines, "loss"), Ok(0.25));
        assert_eq!(select_number(lines, "step"), Ok(3.0));
        assert_eq!(select_number("{\"a\": 1}\n{\"a\": Infinity}\n", "a"), Ok(f64::INFINITY));
    }

    #[test]
    fn all_lines_with_the_key_have_a_value() {
        let scratch = tempfile::tempdir().unwrap();
        let text = "{\"step\": 10, \"loss\": 0.5}\n\n{\"step\": 15}\n{\"iter\": 2, \"epoch\": 1, \"loss\": NaN}\n{\"lo";
        std::fs::write(scratch.path().join("log.jsonl"), text).unwrap();
        let (_, values) = read_values(scratch.path(), "log.jsonl", "loss").unwrap();
        let shown: Vec<String> = values
            .iter()
            .map(|value| format!("{} {:?} {:?}", value.value, value.counts, value.line.unwrap()))
            .collect();
        assert_eq!(shown, ["0.5 [Some(10.0), None, None] 1.0", "NaN [None, Some(2.0), Some(1.0)] 4.0"]);
        assert!(read_values(scratch.path(), "none.jsonl", "loss").is_none());
    }

    #[test]
    fn only_a_file_of_the_volume_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let volume = scratch.path().join("volume");
        std::fs::create_dir(&volume).unwrap();
        std::fs::write(scratch.path().join("outside.json"), "{\"a\": 1}").unwrap();
        std::fs::write(volume.join("inside.json"), "{\"a\": 2}").unwrap();
        for (link, to) in [("out", "../outside.json"), ("abs", "/etc/hostname"), ("in", "inside.json")] {
            std::os::unix::fs::symlink(to, volume.join(link)).unwrap();
        }
        rustix::fs::mknodat(rustix::fs::CWD, volume.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let read = |path: &str| read_number(&volume, path, "a");
        assert_eq!((read("inside.json"), read("in")), (Ok(2.0), Ok(2.0)));
        for path in ["out", "abs", "../outside.json"] {
            assert_eq!(read(path), Err(format!("`{path}` leads out of its volume")));
        }
        assert!(read("pipe").is_err() && read(".").is_err());
        assert!(read("none.json").unwrap_err().contains("no such file or directory"));
        let line = format!("{{\"a\": {}}}\n", "1".repeat(100));
        let many = line.repeat(usize::try_from(MAX_FILE_BYTES).unwrap() / line.len() + 2) + "{\"a\": 7}\n";
        std::fs::write(volume.join("long.jsonl"), many).unwrap();
        assert_eq!(read("long.jsonl"), Ok(7.0));
    }
}
