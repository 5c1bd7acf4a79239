//! Variables and labels, each value on one line.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::JobPlan;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::Kind;

use super::build::Build;

impl Build<'_> {
    /// Refuses a value that a line of a Dockerfile cannot hold.
    pub(super) fn one_line(&mut self, value: &str, at: &Pointer, what: &str) -> bool {
        let fine = !value.contains(|c: char| c.is_control() && c != '\t');
        if !fine {
            self.sink.push(
                Diagnostic::error(
                    codes::BUILD_LINE_BREAK,
                    format!("{what} cannot hold a line break or a control character"),
                )
                .at(at, "an instruction of a Dockerfile is one line")
                .note("put the text into a file and `copy` it, or set it in the role's `env`"),
            );
        }
        fine
    }

    /// `ENV`, split into several instructions if a value uses an earlier one.
    pub(super) fn env(&mut self, env: &IndexMap<String, String>, at: &Pointer) {
        let mut batch: Vec<(String, String)> = Vec::new();
        for (name, value) in env {
            if !self.one_line(value, &at.key(name), "a variable of an image") {
                continue;
            }
            if batch.iter().any(|(earlier, _)| uses(value, earlier)) {
                self.push(Kind::Env(std::mem::take(&mut batch)), at);
            }
            batch.push((name.clone(), value.clone()));
        }
        if !batch.is_empty() {
            self.push(Kind::Env(batch), at);
        }
    }

    /// The annotations of the OCI image specification, and the job's own labels.
    pub(super) fn labels(&mut self, job: &JobPlan, name: &str, own: &IndexMap<String, String>) {
        let title = if name == "main" { job.name.clone() } else { format!("{}-{name}", job.name) };
        let mut standard = vec![("title", title)];
        if let Some(description) = &job.description {
            standard.push(("description", description.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        standard.push(("base.name", self.from.to_owned()));
        let standard: Vec<_> = standard
            .into_iter()
            .map(|(key, value)| (format!("org.opencontainers.image.{key}"), value))
            .filter(|(key, value)| !own.contains_key(key) && !value.contains(char::is_control))
            .collect();
        self.push_default(Kind::Label(standard), "the annotations of the OCI image specification");
        let at = self.at.key("labels");
        let mut pairs = Vec::new();
        for (key, value) in own {
            if self.one_line(value, &at.key(key), "a label") && self.one_line(key, &at.key(key), "a label") {
                pairs.push((key.clone(), value.clone()));
            }
        }
        if !pairs.is_empty() {
            self.push(Kind::Label(pairs), &at);
        }
    }
}

/// Whether a value of `ENV` uses a variable.
fn uses(value: &str, name: &str) -> bool {
    value.match_indices('$').any(|(at, _)| {
        let rest = &value[at + 1..];
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.strip_prefix(name)
            .is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}
