//! Files of variables: `--env-file` and `env_file`.

use camino::Utf8Path;

use crate::files::Files;
use crate::source::Span;

use super::container::{Role, is_secret, variable};

/// Reads the variables of a file; a line without a value takes that of the user who starts the job.
pub(super) fn read(role: &mut Role<'_, '_>, path: &str, part: Span, files: &dyn Files) {
    let Some(text) = files.read(Utf8Path::new(path)).ok().and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        let example = ["example", "sample", "template"].iter().map(|end| format!("{path}.{end}"));
        let example = example.into_iter().find(|path| files.exists(Utf8Path::new(path)));
        let instead = match example {
            Some(example) => format!("write it first, for instance as a copy of `{example}`"),
            None => "write it first, or its variables as `env`".to_owned(),
        };
        return role.draft.lacks(part, format!("cannot read the file `{path}`"), instead);
    };
    let mut any = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        any = true;
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=') {
            Some((name, _)) if is_secret(name) => {
                let message = format!("the value of `{}` is not written to the job file", name.trim());
                role.draft.changed(
                    part,
                    message,
                    "export the variable before the job starts, or write `secrets: {…: {file: PATH}}`",
                );
                variable(role, name.trim(), None, part);
            }
            Some((name, value)) => {
                let value = value.trim().replace("${{", "${{ '${{' }}");
                variable(role, name.trim(), Some(&value), part);
            }
            None => variable(role, line, None, part),
        }
    }
    if !any {
        role.draft.note(part, "the file has no variables");
    }
}
