//! The parameters of OpenPAI's runtime plugins (openpai-runtime, `src/plugins/*/init.py`).
//!
//! The runtime silently ignores unknown parameters and callbacks of unknown events, so both are
//! reported here.

use super::plugins::Plugin;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::document::Node;
use crate::import::fields::{Fields, mismatch};
use crate::suggest;

/// When the commands of a callback run: before those of the role, or after they succeed.
pub(super) const EVENTS: [&str; 2] = ["taskStarts", "taskSucceeds"];

/// The parameters of a plugin, and the required ones.
struct PluginParameters {
    plugin: &'static str,
    known: &'static [&'static str],
    required: &'static [&'static str],
}

const ACCEPTED: [PluginParameters; 5] = [
    PluginParameters {
        plugin: "ssh",
        known: &["jobssh", "sshbarrier", "sshbarrierTimeout", "userssh"],
        required: &[],
    },
    PluginParameters { plugin: "cmd", known: &["preCommands", "postCommands", "callbacks"], required: &[] },
    PluginParameters { plugin: "git", known: &["repo_uri", "options", "clone_dir"], required: &["repo_uri"] },
    PluginParameters { plugin: "teamwise_storage", known: &["storageConfigNames"], required: &[] },
    PluginParameters { plugin: "tensorboard", known: &["port", "logdir"], required: &[] },
];

/// Reports parameters that the plugin does not accept; `besides` are the other keys of its
/// prerequisite.
pub(super) fn check(plugin: &Plugin<'_>, besides: &[&str], sink: &mut Sink) {
    let Some(accepted) = ACCEPTED.iter().find(|accepted| accepted.plugin == plugin.name) else { return };
    let fields = plugin.fields();
    for entry in fields.node.entries() {
        let key = entry.key.as_str();
        if accepted.known.contains(&key) || besides.contains(&key) {
            continue;
        }
        // A parameter may belong to another release; only a likely typo is reported.
        if suggest::nearest(key, accepted.known.iter().copied()).is_some() {
            let known: Vec<&str> = accepted.known.iter().chain(besides).copied().collect();
            let alone =
                Node { value: crate::document::Value::Mapping(vec![entry.clone()]), span: fields.node.span };
            let alone = Fields { node: &alone, place: fields.place, within: fields.within.clone() };
            alone.refuse_others(&known, sink);
        } else {
            let message =
                format!("the plugin `{}` has no parameter `{key}`: OpenPAI ignores it", plugin.name);
            let known = suggest::list(accepted.known.iter().copied());
            sink.push(
                Diagnostic::warning(codes::OPENPAI_IGNORED, message)
                    .at_span(entry.key_span, "")
                    .note(format!("its parameters are {known}")),
            );
        }
    }
    for name in accepted.required {
        fields.required(name, sink);
    }
    if plugin.name == "cmd" {
        commands(&fields, sink);
    }
}

/// The commands of the plugin `cmd`: two lists, or callbacks.
fn commands(fields: &Fields<'_>, sink: &mut Sink) {
    let lists = ["preCommands", "postCommands"];
    for name in lists {
        fields.texts(name, sink);
    }
    if let (Some(callbacks), Some(list)) =
        (fields.entry("callbacks"), lists.iter().find_map(|name| fields.entry(name)))
    {
        let message = format!("the plugin `cmd` takes `callbacks` or `{}`, not both", list.key);
        sink.push(
            Diagnostic::error(codes::OPENPAI_VALUE, message)
                .at_span(list.key_span, "")
                .at_span(callbacks.key_span, "the callbacks")
                .note("write the commands as a callback: `{event: taskStarts, commands: [...]}`"),
        );
    }
    for item in fields.list("callbacks", "a list of callbacks", sink) {
        let Some(callback) = Fields::of_item(item, "callbacks", sink) else { continue };
        callback.refuse_others(&["event", "commands"], sink);
        callback.required("commands", sink);
        callback.texts("commands", sink);
        let Some((field, event)) =
            callback.required("event", sink).and_then(|_| callback.text("event", sink))
        else {
            continue;
        };
        if EVENTS.contains(&event) {
            continue;
        }
        let found = mismatch(field, "`taskStarts` or `taskSucceeds`")
            .note("OpenPAI never runs the commands of another event");
        sink.push(match suggest::nearest(event, EVENTS) {
            Some(near) => {
                found.fix(format!("write `{near}`"), Location::Span(field.value.span), near, Safety::Safe)
            }
            None => found,
        });
    }
}
