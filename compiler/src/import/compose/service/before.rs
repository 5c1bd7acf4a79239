//! `pre_start`: commands before the program, which are `setup`.

use jobc_schema::shell;

use crate::document::{Entry, Node};

use super::super::super::nodes::string;
use super::super::super::values::{scalar, texts};
use super::Service;

impl Service<'_, '_, '_> {
    /// Reads `pre_start`.
    pub(super) fn before(&mut self, node: &Node) {
        let mut script = Vec::new();
        for item in node.items() {
            for entry in item.entries() {
                let part = entry.key_span;
                match entry.key.as_str() {
                    "command" => {
                        self.role.draft.account.field(part, format!("roles.{}.setup", self.role.name));
                    }
                    "per_replica" if entry.value.to_json() == true => {
                        self.role.draft.note(part, "`setup` runs in each instance");
                    }
                    key => {
                        let message = format!("`{key}` of a command before the program");
                        self.role.draft.refuse(
                            part,
                            message,
                            "write a role for it, and `depends_on` in this one",
                        );
                    }
                }
            }
            let command = item.get("command").unwrap_or(item);
            let line = scalar(command).unwrap_or_else(|| {
                let words: Vec<String> = texts(command).into_iter().map(|(word, _)| word).collect();
                shell::join(words.iter().map(String::as_str))
            });
            script.push(self.text(&line, item.span));
        }
        let at = node.span;
        self.role.field(&["setup"], at, string(at, script.join("\n")));
    }

    /// Refuses `setup` of a program that is the ENTRYPOINT of the image.
    pub(super) fn check_setup(&mut self, entries: &[Entry]) {
        let Some(entry) = entries.iter().find(|entry| entry.key == "pre_start") else { return };
        if self.role.get(&["setup"]).is_some() && self.role.get(&["run"]).is_none() {
            self.role.draft.refuse(
                entry.key_span,
                "a command before the ENTRYPOINT of the image",
                "write `entrypoint` too: `setup` runs before `run` of a job file",
            );
        }
    }
}
