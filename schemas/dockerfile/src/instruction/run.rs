//! `RUN`.

use super::super::forms::{Network, Run, Runs};
use super::super::heredoc::opening;
use super::super::line::{Part, Raw};
use super::super::split;
use super::arguments::{almost_json, not_strings};
use super::flags::{flag_value, unknown_flag};
use super::mount;
use super::scope::Scope;

const FLAGS: &[&str] = &["mount", "network", "security", "device"];

pub(super) fn read(
    keyword: Part<'_>,
    rest: Part<'_>,
    heredocs: &[Raw],
    scope: &mut Scope<'_>,
) -> Option<Run> {
    let (flags, rest) = split::flags(rest);
    let mut mounts = Vec::new();
    let mut network = Network::Default;
    for flag in &flags {
        match flag.name.as_str() {
            "mount" => mounts.push(mount::read(flag, scope)?),
            "network" => {
                let value = flag_value("RUN", flag, scope)?;
                network = match value.text.as_str() {
                    "default" => Network::Default,
                    "none" => Network::None,
                    "host" => Network::Host,
                    other => {
                        let message = format!("unknown build network `{other}`");
                        scope.problems.wrong(value.span, message, "write `none`, `default` or `host`");
                        return None;
                    }
                };
            }
            "security" => {
                let value = flag_value("RUN", flag, scope)?;
                if value.text != "sandbox" {
                    scope.problems.unsupported(
                        value.span,
                        format!("`--security={}` is not supported", value.text),
                        "commands of a build run with the default privileges of a container",
                    );
                }
            }
            "device" => scope.problems.unsupported(
                flag.part.span(),
                "`RUN --device` is not supported",
                "devices belong to the running job, not to its image",
            ),
            _ => {
                unknown_flag("RUN", flag, FLAGS, scope);
                return None;
            }
        }
    }
    let command = command(keyword, rest, heredocs, scope)?;
    Some(Run { command, mounts, network })
}

fn command(keyword: Part<'_>, rest: Part<'_>, heredocs: &[Raw], scope: &mut Scope<'_>) -> Option<Runs> {
    match split::json(rest) {
        Some(Ok(words)) if !words.is_empty() => return Some(Runs::Exec(words)),
        Some(Err(())) => {
            not_strings(rest, scope);
            return None;
        }
        Some(Ok(_)) => {}
        None if rest.is_empty() => {}
        None => {
            almost_json(rest, scope);
            return Some(shell(rest.text(), heredocs));
        }
    }
    scope.problems.wrong(keyword.span(), "`RUN` needs a command", "such as `RUN make install`");
    None
}

/// A line for the shell, with its heredocs.
fn shell(line: &str, heredocs: &[Raw]) -> Runs {
    match heredocs {
        [] => Runs::Shell(line.to_owned()),
        // A single heredoc is the script itself.
        [only] if opening(line).is_some() => {
            let content = only.text();
            if content.starts_with("#!") {
                Runs::Script { name: only.name.clone(), content }
            } else {
                Runs::Shell(content)
            }
        }
        several => {
            let mut text = line.to_owned();
            for heredoc in several {
                text += &format!("\n{}{}", heredoc.content, heredoc.name);
            }
            Runs::Shell(text)
        }
    }
}
