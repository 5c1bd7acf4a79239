//! A tool: its name, its parameters, and the command that it runs.

use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde_json::Value;

use super::command::Command;
use super::parameter::{Arguments, Parameter, schema};
use super::root::Root;

/// The permissions that the command line grants besides reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Permissions {
    /// Tools that change files below the root directory.
    pub write: bool,
    /// Tools that run and stop jobs.
    pub run: bool,
}

/// The side effects of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It compiles, and changes nothing.
    None,
    /// It reads the state of jobs on this host and on targets, and changes nothing.
    Observes,
    /// It changes files below the root directory.
    Writes,
    /// It starts a job.
    Starts,
    /// It ends a job.
    Ends,
}

/// A tool of the server.
pub(super) struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    pub parameters: &'static [Parameter],
    /// The JSON Schema of the result, if it is an object.
    pub output: Option<fn() -> Value>,
    /// The command for checked arguments.
    pub command: fn(&Arguments, &Root) -> Result<Command, String>,
}

impl Tool {
    pub(super) fn is_permitted(&self, permissions: Permissions) -> bool {
        match self.effect {
            Effect::None => true,
            Effect::Observes => crate::platform::RUNS_JOBS,
            Effect::Writes => permissions.write,
            Effect::Starts | Effect::Ends => permissions.run && crate::platform::RUNS_JOBS,
        }
    }

    /// The tool as a client sees it.
    pub(super) fn listed(&self) -> Listed {
        let is_read_only = matches!(self.effect, Effect::None | Effect::Observes);
        let annotations = ToolAnnotations::new()
            .read_only(is_read_only)
            .destructive(matches!(self.effect, Effect::Writes | Effect::Ends))
            .idempotent(self.effect != Effect::Starts)
            .open_world(!matches!(self.effect, Effect::None | Effect::Writes));
        let listed = Listed::new(self.name, self.about, schema(self.parameters))
            .with_title(self.title)
            .with_annotations(annotations);
        match self.output {
            Some(output) => {
                let output = serde_json::from_value(output()).expect("the schema of a result is an object");
                listed.with_raw_output_schema(std::sync::Arc::new(output))
            }
            None => listed,
        }
    }
}
