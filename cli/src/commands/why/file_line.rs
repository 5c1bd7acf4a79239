//! A line of a file, as compilers and editors write it: `FILE:LINE` or `FILE:LINE:COLUMN`.

use camino::Utf8PathBuf;

use crate::input::InputError;

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileLine {
    /// The file, as given.
    pub file: Utf8PathBuf,
    /// The line, from 1.
    pub line: u32,
}

impl FileLine {
    /// Reads `FILE:LINE`; a column after it is not needed.
    ///
    /// # Errors
    /// A text without a line.
    pub(super) fn parse(text: &str) -> Result<Self, InputError> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|&line| line > 0);
        let (file, line) = match text.rsplit_once(':') {
            Some((before, last)) => match (before.rsplit_once(':'), number(last)) {
                (Some((file, line)), Some(_)) if number(line).is_some() => (file, number(line)),
                (_, line) => (before, line),
            },
            None => (text, None),
        };
        match line {
            Some(line) if !file.is_empty() => Ok(Self { file: Utf8PathBuf::from(file), line }),
            _ => Err(InputError(format!(
                "`{text}` has no line; write FILE:LINE, such as `job.yaml:12` or `out/hello/kubernetes/kubernetes/03-job-hello.yaml:12`"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_number_is_parsed_after_the_file_name() {
        let check = |text: &str| {
            FileLine::parse(text).map(|place| (place.file.into_string(), place.line)).map_err(|_| ())
        };
        assert_eq!(check("job.yaml:12"), Ok(("job.yaml".to_owned(), 12)));
        assert_eq!(check("out/a:b/job.yaml:12:3"), Ok(("out/a:b/job.yaml".to_owned(), 12)));
        assert_eq!(check("c:/job.yaml:7"), Ok(("c:/job.yaml".to_owned(), 7)));
        for wrong in ["job.yaml", "job.yaml:", "job.yaml:0", "job.yaml:x", ":3", ""] {
            assert_eq!(check(wrong), Err(()), "{wrong}");
        }
    }
}
