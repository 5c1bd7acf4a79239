//! J0355: a file in the directory of the user that several tasks write.

use std::ops::Range;

use jobc_schema::Pointer;
use serde_json::Value as Json;

use super::axes::is_shell;
use crate::check::command::split;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::document::{Document, Node};

/// Words of scripts that may run a command in one task only, or elsewhere.
const CONDITIONS: [&str; 9] = ["if", "case", "while", "until", "&&", "||", "cd", "pushd", "exec"];

/// Warns of `> results.txt` with `cwd: true` in roles with several instances, and in sweeps.
pub(crate) fn check(document: &Document, sink: &mut Sink) {
    let root = &document.root;
    // Of some frameworks only the first instance runs the command.
    if root.get("distributed").is_some() || root.get("workdir").is_some() {
        return;
    }
    for role in root.get("roles").map_or(&[][..], Node::entries) {
        let Some(script) = role.value.get("run").and_then(Node::as_str) else { continue };
        if role.value.get("workdir").is_some() || !is_shell(&role.value, root) || !has_cwd(&role.value, root)
        {
            continue;
        }
        let instances = role.value.get("instances").and_then(|node| node.to_json().as_u64()).unwrap_or(1);
        let (of_job, of_role) = (several(root), several(&role.value));
        let name = &role.key;
        let who = match () {
            () if !of_job.is_empty() => "the jobs of the matrix".to_owned(),
            () if !of_role.is_empty() => format!("the combinations of role `{name}`"),
            () if instances > 1 => format!("the {instances} instances of role `{name}`"),
            () => continue,
        };
        let Some(file) = written_file(script) else { continue };
        let mut own: Vec<String> =
            of_job.iter().chain(&of_role).map(|axis| format!("${{{{ matrix.{axis} }}}}")).collect();
        own.extend((instances > 1).then(|| "$JOBC_INDEX".to_owned()));
        let path = &script[file.clone()];
        let (directory, base) = path.rfind('/').map_or(("", path), |slash| path.split_at(slash + 1));
        let (stem, ending) =
            base.rfind('.').filter(|dot| *dot > 0).map_or((base, ""), |dot| base.split_at(dot));
        let better = format!("{directory}{stem}-{}{ending}", own.join("-"));
        let place = Location::inside(&Pointer::ROOT.keys(["roles", name, "run"]), script, file.clone());
        let message =
            format!("{who} all write the file `{path}`, and one overwrites what another has written");
        let found = Diagnostic::warning(codes::SAME_FILE, message).at_place(place.clone(), "");
        let note = format!("`cwd: true` is the same directory for all of them; `{better}` is a file of each");
        sink.push(found.note(note).write(place, &better));
    }
}

/// Whether the image of a role is the host with the directory of the user.
fn has_cwd(role: &Node, root: &Node) -> bool {
    let Some(image) = role.get("image").or_else(|| root.get("image")) else { return false };
    let name = image.get("use").and_then(Node::as_str);
    let image = name.and_then(|name| root.get("images")?.get(name)).unwrap_or(image);
    let cwd = image.get("host").and_then(|host| host.get("cwd"));
    cwd.is_some_and(|cwd| cwd.to_json() == Json::Bool(true))
}

/// The axes of a job or role that have several values.
fn several(node: &Node) -> Vec<&str> {
    let Some(matrix) = node.get("matrix") else { return vec![] };
    let axes = matrix.get("axes").unwrap_or(matrix).entries().iter();
    let axes = axes.filter(|axis| axis.value.items().len() > 1).map(|axis| axis.key.as_str());
    axes.filter(|axis| !["include", "exclude"].contains(axis)).collect()
}

/// Where a script names the file that a redirection certainly overwrites: a relative path without variables.
fn written_file(script: &str) -> Option<Range<usize>> {
    if script.split_whitespace().any(|word| CONDITIONS.contains(&word)) {
        return None;
    }
    let commands = split(script);
    let redirects = |path: &str| {
        let words = || commands.iter().flat_map(|command| &command.words);
        words().any(|word| word.strip_suffix(path).is_some_and(|before| before.ends_with('>')))
            || words().zip(words().skip(1)).any(|(word, next)| word.ends_with('>') && next == path)
    };
    script.match_indices('>').find_map(|(at, _)| {
        let rest = &script[at + 1..];
        let start = script.len() - rest.trim_start_matches(' ').len();
        let is_path = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        let end = script[start..].find(|c| !is_path(c)).map_or(script.len(), |length| start + length);
        let (before, path, after) = (&script[..at], &script[start..end], &script[end..]);
        let is_whole = after.is_empty() || after.starts_with([' ', '\t', '\n', ';', ')', '|']);
        let appends = before.ends_with('>');
        let is_certain =
            !appends && is_whole && path.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
        (is_certain && redirects(path)).then_some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::written_file;

    #[test]
    fn only_a_file_that_is_certainly_overwritten_is_found() {
        let found = |script: &str| written_file(script).map(|file| script[file].to_owned());
        for script in ["a > x.txt", "a >x.txt", "a --lr 1 2> x.txt | tee y", "b\n(a >x.txt)\nc"] {
            assert_eq!(found(script).as_deref(), Some("x.txt"), "{script}");
        }
        for script in [
            "a >> x.txt",
            "a > $JOBC_INDEX.txt",
            "a > x-$JOBC_INDEX.txt",
            "a > /output/x.txt",
            "a > \"x.txt\"",
            "a 2>&1",
            "a &> /dev/null",
            "python -c 'print(1 > x)'",
            "cd sub\na > x.txt",
            "if [ $JOBC_INDEX = 0 ]; then a > x.txt; fi",
            "[ $JOBC_INDEX = 0 ] && a > x.txt",
        ] {
            assert_eq!(found(script), None, "{script}");
        }
    }
}
