//! The parts of a script that jobc wrote for OpenPAI, separated by comments so that they can be read back.
//!
//! A part that was generated (an address, a framework's variables) cannot be read back, and then the whole
//! script is treated as one command.

use indexmap::IndexMap;

/// A part of a script, below its comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The variables of every process, which are generated again; the job may have
    /// `compat: [openpai]`.
    Provided {
        /// Whether the job has it.
        compat: bool,
    },
    /// The setup of a framework.
    Framework,
    /// The variables the user set.
    Env,
    /// The files of the role.
    Files,
    /// The working directory of the command.
    Workdir,
    /// The commands of `setup`.
    Setup,
    /// The command; its text may end with a newline.
    Run {
        /// Whether it does not.
        chomped: bool,
    },
}

impl Section {
    const ALL: [Self; 9] = [
        Self::Provided { compat: false },
        Self::Provided { compat: true },
        Self::Framework,
        Self::Env,
        Self::Files,
        Self::Workdir,
        Self::Setup,
        Self::Run { chomped: false },
        Self::Run { chomped: true },
    ];

    /// The comment.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Provided { compat: false } => "# jobc: what every process is told",
            Self::Provided { compat: true } => "# jobc: what every process is told, with compat: [openpai]",
            Self::Framework => "# jobc: distributed",
            Self::Env => "# jobc: env",
            Self::Files => "# jobc: files",
            Self::Workdir => "# jobc: workdir",
            Self::Setup => "# jobc: setup",
            Self::Run { chomped: false } => "# jobc: run",
            Self::Run { chomped: true } => "# jobc: run, without a line break at its end",
        }
    }
}

/// The comment with the role's name here, at the beginning of a script whose role has another name on the server.
pub const ROLE_MARK: &str = "# jobc: role ";

/// The content of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// The role's name here, if it differs from that on the server.
    pub role: Option<String>,
    /// Whether the job has `compat: [openpai]`.
    pub compat: bool,
    /// Variables with their values.
    pub env: IndexMap<String, Value>,
    /// Files by path: the content, and the permission bits in octal.
    pub files: IndexMap<String, (Value, String)>,
    /// The working directory of the command.
    pub workdir: Option<String>,
    /// The commands of `setup`.
    pub setup: Option<String>,
    /// The command.
    pub run: String,
}

/// A text, or the name of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The text.
    Text(String),
    /// The secret.
    Secret(String),
}

/// Reads a script that jobc wrote; `None` for any other, or if it cannot be read back.
pub fn read_sections(script: &str) -> Option<Sections> {
    let mut sections = Sections::default();
    let mut open: Option<Section> = None;
    let mut text = String::new();
    let mut ran = false;
    for line in script.split_inclusive('\n') {
        let mark = Section::ALL.into_iter().find(|section| section.mark() == line.trim_end_matches('\n'));
        // After its comment the command may contain anything.
        if let Some(mark) = mark.filter(|_| !ran) {
            sections.take(open, &std::mem::take(&mut text))?;
            ran = matches!(mark, Section::Run { .. });
            open = Some(mark);
        } else {
            text.push_str(line);
        }
    }
    sections.take(open, &text)?;
    ran.then_some(sections)
}

impl Sections {
    fn take(&mut self, section: Option<Section>, text: &str) -> Option<()> {
        match section {
            // Functions that list addresses, behind the name of the role.
            None => self.role = text.lines().find_map(|line| line.strip_prefix(ROLE_MARK)).map(str::to_owned),
            Some(Section::Provided { compat }) => {
                self.compat = compat;
                // Where scripts of jobc 0.1 have it.
                let named = text.lines().find_map(|line| line.strip_prefix("export JOBC_ROLE="));
                self.role = named.map(str::to_owned).or(self.role.take());
            }
            Some(Section::Framework) => return None,
            Some(Section::Env) => self.env(text)?,
            Some(Section::Files) => self.files(text)?,
            Some(Section::Workdir) => self.workdir = Some(word(text.strip_prefix("cd ")?)?.0),
            // A single line is written without a newline, several lines with one.
            Some(Section::Setup) => {
                let text = own(text)?;
                let one = text.strip_suffix('\n').filter(|line| !line.contains('\n'));
                self.setup = Some(one.unwrap_or(text).to_owned());
            }
            Some(Section::Run { chomped }) => {
                let text = own(text)?;
                let text = if chomped { text.strip_suffix('\n')? } else { text };
                text.clone_into(&mut self.run);
            }
        }
        Some(())
    }

    fn env(&mut self, mut text: &str) -> Option<()> {
        while !text.is_empty() {
            if let Some(rest) = text.strip_prefix("export ") {
                let (name, rest) = rest.split_once('=')?;
                let (value, rest) = word(rest)?;
                self.env.insert(name.to_owned(), Value::Text(value));
                text = rest;
            } else {
                let rest = text.strip_prefix("IFS= read -r -d '' ")?;
                let (name, rest) = rest.split_once(" <<'JOBC_SECRET' || :\n")?;
                let (secret, rest) = secret(rest)?;
                text = rest.strip_prefix(&format!("export {name}=\"${{{name}%$'\\n'}}\"\n"))?;
                self.env.insert(name.to_owned(), Value::Secret(secret));
            }
        }
        Some(())
    }

    fn files(&mut self, mut text: &str) -> Option<()> {
        while !text.is_empty() {
            if let Some(rest) = text.strip_prefix("mkdir -p ") {
                text = word(rest)?.1;
            }
            let (path, value, rest) = if let Some(rest) = text.strip_prefix("cat >") {
                let (path, rest) = rest.split_once(" <<'")?;
                let (end, rest) = rest.split_once("'\n")?;
                let length = rest
                    .find(&format!("\n{end}\n"))
                    .map(|at| at + 1)
                    .or(rest.starts_with(&format!("{end}\n")).then_some(0))?;
                (
                    word(&format!("{path}\n"))?.0,
                    Value::Text(rest[..length].to_owned()),
                    &rest[length + end.len() + 1..],
                )
            } else if let Some(rest) = text.strip_prefix("(umask 077; cat >") {
                let (path, rest) = rest.split_once(") <<'JOBC_SECRET'\n")?;
                let (secret, rest) = secret(rest)?;
                (word(&format!("{path}\n"))?.0, Value::Secret(secret), rest)
            } else {
                let (value, rest) = piece(text.strip_prefix("printf %s ")?)?;
                let (path, rest) = word(rest.strip_prefix(" >")?)?;
                (path, Value::Text(value), rest)
            };
            let (mode, rest) = rest.strip_prefix("chmod ")?.split_once(' ')?;
            let (again, rest) = word(rest)?;
            if again != path {
                return None;
            }
            self.files.insert(path, (value, mode.to_owned()));
            text = rest;
        }
        Some(())
    }
}

/// A script as the user wrote it, not one assembled at run time.
fn own(text: &str) -> Option<&str> {
    let made = ["eval ", "exec ", "if [ \"$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX\" != 0 ]; then\n  trap "];
    (!made.iter().any(|start| text.starts_with(start))).then_some(text)
}

/// The name of a secret in a here-document, and the rest.
fn secret(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix("<% $secrets.")?;
    let (name, rest) = rest.split_once(" %>\nJOBC_SECRET\n")?;
    Some((name.to_owned(), rest))
}

/// A literal word up to the end of its line, and the next line.
fn word(text: &str) -> Option<(String, &str)> {
    let (word, rest) = piece(text)?;
    Some((word, rest.strip_prefix('\n')?))
}

/// A literal word as the backend quotes it, and the rest.
fn piece(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    loop {
        if let Some(inner) = rest.strip_prefix('\'') {
            let (quoted, behind) = inner.split_once('\'')?;
            word.push_str(quoted);
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("\\'") {
            word.push('\'');
            rest = behind;
        } else {
            let length = rest.find([' ', '\n', '\'', '\\'])?;
            if rest[..length].contains(['"', '$', '`', '(', ')', ';', '<', '>']) {
                return None;
            }
            word.push_str(&rest[..length]);
            rest = &rest[length..];
            if rest.starts_with([' ', '\n']) {
                return Some((word, rest));
            }
            if length == 0 && !rest.starts_with(['\'', '\\'])
                || rest.starts_with('\\') && !rest.starts_with("\\'")
            {
                return None;
            }
        }
    }
}
