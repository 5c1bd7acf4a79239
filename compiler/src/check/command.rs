//! What a role's command starts, as far as it can be read without running a shell.
//!
//! Words are split as a shell does, quotes and continued lines included; nothing is expanded. It serves lints, so
//! what it cannot read it leaves out.

use jobc_schema::plan::{CommandPlan, RolePlan, Text};

/// A program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Whether it ends in `&`.
    pub(crate) background: bool,
}

impl Command {
    /// The program's name without its directory.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
    }

    /// The arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether an argument is exactly this.
    pub(crate) fn has(&self, argument: &str) -> bool {
        self.arguments().iter().any(|a| a == argument)
    }

    /// The module of `python -m MODULE`.
    pub(crate) fn python_module(&self) -> Option<&str> {
        if !self.program().starts_with("python") {
            return None;
        }
        let at = self.arguments().iter().position(|a| a == "-m")?;
        self.arguments().get(at + 1).map(String::as_str)
    }

    /// Whether it is PyTorch's launcher.
    pub(crate) fn is_torchrun(&self) -> bool {
        self.program() == "torchrun"
            || matches!(self.python_module(), Some("torch.distributed.run" | "torch.distributed.launch"))
    }

    /// The value of a flag, `--flag=VALUE` or `--flag VALUE`; `-` and `_` inside the name are alike.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        let same = |word: &str| word.replace('_', "-") == name.replace('_', "-");
        let arguments = self.arguments();
        arguments.iter().enumerate().find_map(|(i, word)| match word.split_once('=') {
            Some((flag, value)) => same(flag).then_some(value),
            None if same(word) => arguments.get(i + 1).map(String::as_str),
            None => None,
        })
    }
}

/// All text of a role's command, placeholders as `$`.
pub(crate) fn text(role: &RolePlan) -> String {
    let list = |texts: &[Text]| texts.iter().map(plain).collect::<Vec<_>>().join(" ");
    let before = |setup: &Option<Text>| setup.as_ref().map(|s| plain(s) + "\n").unwrap_or_default();
    match &role.command {
        CommandPlan::Image {} => String::new(),
        CommandPlan::Args(args) => list(args),
        CommandPlan::Argv { argv, setup } => before(setup) + &list(argv),
        CommandPlan::Script { setup, script, .. } => before(setup) + &plain(script),
    }
}

/// The programs a role's command starts, in order; none where another language than a shell's reads it.
pub(crate) fn commands(role: &RolePlan) -> Vec<Command> {
    match &role.command {
        CommandPlan::Image {} | CommandPlan::Args(_) => vec![],
        CommandPlan::Argv { argv, setup } => {
            let mut found = setup.as_ref().map(|s| split(&plain(s))).unwrap_or_default();
            let words: Vec<String> = argv.iter().map(plain).collect();
            // `[bash, -c, "…"]` holds a script.
            let script = words.iter().skip(1).position(|w| w.starts_with('-') && w.ends_with('c'));
            match script.and_then(|at| words.get(at + 2)).filter(|_| is_shell(&words[0])) {
                Some(script) => found.extend(split(script)),
                None => found.extend(unwrap(&words, false)),
            }
            found
        }
        CommandPlan::Script { shell, setup, script } => {
            if !shell.first().is_some_and(|s| is_shell(s)) {
                return vec![];
            }
            let mut found = setup.as_ref().map(|s| split(&plain(s))).unwrap_or_default();
            found.extend(split(&plain(script)));
            found
        }
    }
}

fn plain(text: &Text) -> String {
    text.render(|_| "$".to_owned())
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("bash" | "sh" | "dash" | "ash" | "zsh" | "ksh"))
}

/// Splits a script into the programs it starts.
pub(crate) fn split(script: &str) -> Vec<Command> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut here: Vec<String> = Vec::new();
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|&c| c != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|&c| c != '"') {
                    let escaped = c == '\\' && chars.peek().is_some_and(|&n| matches!(n, '"' | '\\' | '$'));
                    word.push(if escaped { chars.next().unwrap_or(c) } else { c });
                }
            }
            '#' if word.is_none() => while chars.next_if(|&c| c != '\n').is_some() {},
            '<' if chars.peek() == Some(&'<') => here.extend(delimiter(&mut chars)),
            // `>&2` and `&>file` send output somewhere; they end nothing.
            '>' if chars.peek() == Some(&'&') => {
                chars.next();
                word.get_or_insert_default().push('>');
            }
            '&' if chars.peek() == Some(&'>') => word.get_or_insert_default().push('&'),
            ' ' | '\t' | '\r' => words.extend(word.take()),
            '\n' | ';' | '&' | '|' | '(' | ')' => {
                words.extend(word.take());
                let double = matches!(c, '&' | '|' | ';') && chars.next_if_eq(&c).is_some();
                found.extend(unwrap(&std::mem::take(&mut words), c == '&' && !double));
                if c == '\n' {
                    here.drain(..).for_each(|end| skip_here(&mut chars, &end));
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    found.extend(unwrap(&words, false));
    found
}

type Chars<'s> = std::iter::Peekable<std::str::Chars<'s>>;

/// Reads the word after `<<` that ends a text in place.
fn delimiter(chars: &mut Chars<'_>) -> Option<String> {
    chars.next();
    if chars.next_if_eq(&'<').is_some() {
        return None;
    }
    let mut end = String::new();
    chars.next_if_eq(&'-');
    while chars.next_if_eq(&' ').is_some() {}
    while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | '>' | ')')) {
        if !matches!(c, '\'' | '"' | '\\') {
            end.push(c);
        }
    }
    Some(end).filter(|end| !end.is_empty())
}

/// Skips the lines of a text in place.
fn skip_here(chars: &mut Chars<'_>, end: &str) {
    while chars.peek().is_some() {
        let line: String = chars.by_ref().take_while(|&c| c != '\n').collect();
        if line.trim_start_matches('\t') == end {
            return;
        }
    }
}

/// The program after assignments, keywords and programs that start another.
fn unwrap(words: &[String], background: bool) -> Option<Command> {
    let mut rest = words;
    while let Some(first) = rest.first() {
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let opens = matches!(
            first.as_str(),
            "exec"
                | "env"
                | "time"
                | "nohup"
                | "command"
                | "then"
                | "do"
                | "else"
                | "if"
                | "while"
                | "until"
                | "!"
                | "{"
        );
        if !is_assignment && !opens {
            break;
        }
        rest = &rest[1..];
    }
    let words = rest.to_vec();
    (!words.is_empty()).then_some(Command { words, background })
}
