//! A program with its arguments.

/// A program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// The variables that are set only for it: `A=1 program`.
    pub(crate) env: Vec<(String, String)>,
    /// Whether it ends in `&`.
    pub(crate) background: bool,
    /// Whether its output goes into a pipe.
    pub(crate) piped: bool,
    /// Whether it runs under `timeout`.
    pub(crate) timed: bool,
}

impl Command {
    /// The program's name without its directory.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| base_name(word))
    }

    /// The words up to one of them, with spaces between.
    pub(crate) fn until(&self, word: &str) -> String {
        let end = self.words.iter().position(|own| own == word).map_or(0, |at| at + 1);
        self.words[..end].join(" ")
    }

    /// The arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether an argument is exactly this.
    pub(crate) fn has(&self, argument: &str) -> bool {
        self.arguments().iter().any(|a| a == argument)
    }

    /// Whether it is a Python interpreter.
    pub(crate) fn is_python(&self) -> bool {
        self.program().starts_with("python")
    }

    /// The module of `python -m MODULE`.
    pub(crate) fn python_module(&self) -> Option<&str> {
        if !self.is_python() {
            return None;
        }
        let at = self.arguments().iter().position(|a| a == "-m")?;
        self.arguments().get(at + 1).map(String::as_str)
    }

    /// The file of `python FILE.py`, also of `uv run FILE.py` and of one that starts itself.
    pub(crate) fn python_file(&self) -> Option<&str> {
        let is_file = |word: &str| camino::Utf8Path::new(word).extension() == Some("py");
        if let Some(file) = self.words.first().filter(|word| is_file(word)) {
            return Some(file);
        }
        let first = self.arguments().iter().find(|word| !word.starts_with('-'))?;
        (self.is_python() && is_file(first)).then_some(first)
    }

    /// The file of `bash FILE.sh`, and of one that starts itself.
    pub(crate) fn shell_file(&self) -> Option<&str> {
        let is_script = |word: &&String| camino::Utf8Path::new(word.as_str()).extension() == Some("sh");
        if let Some(file) = self.words.first().filter(is_script) {
            return Some(file);
        }
        self.arguments()
            .first()
            .filter(|word| is_shell(self.program()) && is_script(word))
            .map(String::as_str)
    }

    /// The value of a flag, `--flag=VALUE` or `--flag VALUE`; `-` and `_` inside the name are alike.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        Some(self.one_of(&[name])?.1)
    }

    /// The first of several flags that has a value: the flag as it is written, and its value.
    pub(crate) fn one_of(&self, names: &[&str]) -> Option<(&str, &str)> {
        let arguments = self.arguments();
        names.iter().find_map(|name| {
            let same = |word: &str| is_same_flag(word, name);
            arguments.iter().enumerate().find_map(|(i, word)| match word.split_once('=') {
                Some((flag, value)) => same(flag).then_some((flag, value)),
                None if same(word) => Some((word.as_str(), arguments.get(i + 1)?.as_str())),
                None => None,
            })
        })
    }
}

/// Whether two names of a flag are the same, `-` and `_` alike.
fn is_same_flag(a: &str, b: &str) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.len() == b.len() && a.bytes().map(dashed).eq(b.bytes().map(dashed))
}

/// A program's name without its directory.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a program is a shell whose scripts are read here.
pub(crate) fn is_shell(program: &str) -> bool {
    matches!(base_name(program), "bash" | "sh" | "dash" | "ash" | "zsh" | "ksh")
}
