//! Definition, references and rename of names.

use camino::Utf8Path;
use jobc_compiler::template::MAIN_FILE;
use lsp_types::{Location, Position, Range, TextEdit, Uri, WorkspaceEdit};

use crate::actions::workspace_edit;
use crate::kind::Kind as FileKind;
use crate::names::{self, Kind, Mention, Name};
use crate::selected::{self, Selected};
use crate::session::Session;
use crate::text::Text;
use crate::tree::Tree;
use crate::{links, uri, variables};

/// The declaration of the item at a position: a name, a template, a file.
pub(crate) fn definition(session: &Session<'_>, at: &Uri, position: Position) -> Vec<Location> {
    let Some(tree) = session.tree(at) else { return vec![] };
    let offset = tree.text.offset(position);
    if let Some(mention) = names::at(mentions(session, at, tree), offset) {
        return all(session, at, &mention.name)
            .into_iter()
            .filter(|(_, it)| it.declares)
            .map(|(l, _)| l)
            .collect();
    }
    file_at(session, at, tree, offset).into_iter().collect()
}

/// Every place of a name.
pub(crate) fn references(
    session: &Session<'_>,
    at: &Uri,
    position: Position,
    declaration: bool,
) -> Vec<Location> {
    let Some(tree) = session.tree(at) else { return vec![] };
    let Some(name) = name_at(session, at, tree, position) else { return vec![] };
    let found = all(session, at, &name.name);
    found
        .into_iter()
        .filter(|(_, mention)| declaration || !mention.declares)
        .map(|(location, _)| location)
        .collect()
}

/// The range that a rename would replace, or why nothing can be renamed there.
pub(crate) fn prepare_rename(
    session: &Session<'_>,
    at: &Uri,
    position: Position,
) -> Result<(Range, String), String> {
    let tree = current(session, at)?;
    let mention = name_at(session, at, tree, position).ok_or("no name to rename at this position")?;
    let found = all(session, at, &mention.name);
    if !found.iter().any(|(_, mention)| mention.declares) {
        return Err(format!("the {} `{}` is not declared", mention.name.kind.word(), mention.name.text));
    }
    if let Some((location, _)) = found.iter().find(|(_, mention)| !mention.exact) {
        let line = location.range.start.line + 1;
        return Err(format!(
            "`{}` is written with escapes on line {line}; write it without escapes first",
            mention.name.text
        ));
    }
    Ok((tree.text.range(mention.range.clone()), mention.name.text))
}

/// The edits that rename a name, in its own file: a targets file may belong to several jobs.
pub(crate) fn rename(
    session: &Session<'_>,
    at: &Uri,
    position: Position,
    new: &str,
) -> Result<WorkspaceEdit, String> {
    prepare_rename(session, at, position)?;
    let tree = current(session, at)?;
    let name = name_at(session, at, tree, position).ok_or("no name at this position")?.name;
    let mentions = mentions(session, at, tree);
    refuse(&name, new, mentions)?;
    let edit = |mention: &Mention| {
        let range = tree.text.range(mention.range.clone());
        (at.clone(), TextEdit { range, new_text: new.to_owned() })
    };
    let mut edits: Vec<_> = mentions.iter().filter(|mention| mention.name == name).map(edit).collect();
    for variable in variables::renamed(&name, new, mentions, &tree.document, tree.text.as_str()) {
        let variables::VariableRename { old, new, places } = variable;
        session.warn(format!(
            "`{old}` is now `{new}`; it is renamed in this file, and scripts that read it must be changed too"
        ));
        edits.extend(places.into_iter().map(|place| {
            let range = tree.text.range(place);
            (at.clone(), TextEdit { range, new_text: new.clone() })
        }));
    }
    Ok(workspace_edit(session, edits))
}

/// Why a new name is not allowed.
fn refuse(name: &Name, new: &str, mentions: &[Mention]) -> Result<(), String> {
    let word = name.kind.word();
    let letters = |allowed: &dyn Fn(char) -> bool| !new.is_empty() && new.chars().all(allowed);
    let begins = |allowed: &dyn Fn(char) -> bool| new.starts_with(allowed);
    let (fits, rule) = match name.kind {
        Kind::Param | Kind::Axis | Kind::Argument => (
            letters(&|c| c.is_ascii_alphanumeric() || c == '_')
                && begins(&|c| c.is_ascii_alphabetic() || c == '_'),
            "use letters, digits and `_`, and do not begin with a digit",
        ),
        Kind::Secret => (
            new.len() <= 63
                && letters(&|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                && begins(&|c| c.is_ascii_alphabetic() || c == '_'),
            "use at most 63 letters, digits, `_` and `-`, and begin with a letter or `_`",
        ),
        kind => {
            let max = if kind == Kind::Port { 15 } else { 32 };
            let fits = new.len() <= max
                && letters(&|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && begins(&|c| c.is_ascii_lowercase())
                && !new.ends_with('-');
            (fits, "use lower-case letters, digits and `-`; begin with a letter and do not end with `-`")
        }
    };
    if !fits {
        return Err(format!("`{new}` cannot be the name of this {word}: {rule}"));
    }
    // Data and outputs share one namespace.
    let volume = |kind| matches!(kind, Kind::Data | Kind::Output);
    let same_space = |other: &Name| {
        other.owner == name.owner && (other.kind == name.kind || (volume(other.kind) && volume(name.kind)))
    };
    let other = mentions.iter().find(|it| it.declares && same_space(&it.name) && it.name.text == new);
    let word = other.map_or(word, |other| other.name.kind.word());
    if other.is_some() && name.text != new {
        Err(format!("`{new}` is already the name of another {word}"))
    } else {
        Ok(())
    }
}

/// The tree of a text without syntax errors: an incomplete tree lacks some of the names.
fn current<'s>(session: &'s Session<'_>, at: &Uri) -> Result<&'s Tree, String> {
    let tree = session.tree(at).filter(|tree| tree.parses);
    tree.ok_or_else(|| "the file has a syntax error; fix it first".to_owned())
}

fn name_at(session: &Session<'_>, at: &Uri, tree: &Tree, position: Position) -> Option<Mention> {
    names::at(mentions(session, at, tree), tree.text.offset(position)).cloned()
}

/// The names of an open text.
pub(crate) fn mentions<'s>(session: &Session<'_>, at: &Uri, tree: &'s Tree) -> &'s [Mention] {
    tree.mentions.get_or_init(|| match session.documents.get(at).map(|open| open.kind) {
        Some(FileKind::Targets) => names::names_of_targets(&tree.document, tree.text.as_str()),
        _ => names::names_of_job(&tree.document, tree.text.as_str()),
    })
}

/// All mentions of a name: in the text itself, and in the job's targets file or the open jobs of a targets file.
fn all(session: &Session<'_>, at: &Uri, name: &Name) -> Vec<(Location, Mention)> {
    let mut found = vec![];
    let mut add = |uri: &Uri, text: &Text, mentions: &[Mention]| {
        let same = mentions.iter().filter(|mention| mention.name == *name).cloned();
        found.extend(same.map(|it| (Location { uri: uri.clone(), range: text.range(it.range.clone()) }, it)));
    };
    if let Some(tree) = session.tree(at) {
        add(at, &tree.text, mentions(session, at, tree));
    }
    let Some(open) = session.documents.get(at).filter(|_| name.kind != Kind::Target) else { return found };
    if open.kind == FileKind::Targets {
        for (job, other) in session.documents.iter().filter(|(_, other)| other.kind == FileKind::Job) {
            if session.targets_of(other) == open.path
                && let Some(tree) = session.tree(&job)
            {
                add(&job, &tree.text, mentions(session, &job, tree));
            }
        }
    } else if let Some(path) = session.targets_of(open)
        && let Some(text) = session.text_of(&path)
        && let Some(document) = crate::analysis::parse_alone(Some(&path), &text)
    {
        let mentions = names::names_of_targets(&document, &text);
        add(&uri::of(&path), &Text::new(text, session.client.encoding), &mentions);
    }
    found
}

/// The file at an offset: a template, a Dockerfile, requirements, the file of a text.
fn file_at(session: &Session<'_>, at: &Uri, tree: &Tree, offset: usize) -> Option<Location> {
    let Selected { path, node, is_key: false } = selected::at(&tree.document, offset)? else { return None };
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let name = node.as_str().filter(|_| links::names_a_file(&tree.document, &steps))?;
    let directory = session.documents.get(at)?.path.as_deref()?.parent()?;
    let mut file = uri::normal(&directory.join(Utf8Path::new(name)));
    let main = file.join(MAIN_FILE);
    // A template may be a directory.
    if steps.last() == Some(&"uses") && session.exists(&main) {
        file = main;
    }
    session.exists(&file).then(|| Location { uri: uri::of(&file), range: Range::default() })
}

#[cfg(test)]
mod tests;
