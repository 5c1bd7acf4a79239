//! Completion inside `${{ }}`: the scopes of the place, and the names in each.

use jobc_compiler::document::Node;
use jobc_compiler::expression::{Scope, scopes_at};
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::cursor::MARK;
use super::item::Item;
use crate::schema::is_index;
use crate::{goto, names};

/// A description of each scope, in one line; spec section "Expressions".
const SCOPES: [(&str, &str); 13] = [
    ("params", "the job's parameters"),
    ("matrix", "the combination of matrix values"),
    ("job", "the job: its `name`"),
    ("args", "the image's build arguments"),
    ("role", "this role: `name`, `instances`, `gpu`"),
    ("roles", "all roles: `instances` of each"),
    ("distributed", "the rendezvous: `world_size`"),
    ("hosts", "the addresses of a role's instances"),
    ("ports", "the numbers of this role's ports, and of another role's below its name"),
    ("data", "the data the role sees: `mount` and `source` of each"),
    ("outputs", "the outputs the role sees: `mount` and `source` of each"),
    ("secrets", "the secrets, as a whole value in `env` and `files`"),
    ("instance", "this instance: its `index`"),
];

/// The possible continuations of the expression at the cursor, and the start of the word; `None` outside an expression.
pub(super) fn items(context: &Context<'_>, text: &str, offset: usize) -> Option<(Vec<Item>, usize)> {
    let before = &text[..offset];
    let (_, code) = before.rsplit_once("${{")?;
    if code.contains("}}") || code.contains('\n') {
        return None;
    }
    let line_end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    let close = if text[offset..line_end].contains("}}") { "" } else { " }}" };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']' | '"' | '\'');
    let path_start =
        code.rfind(|c| !word(c)).map_or(0, |at| at + code[at..].chars().next().map_or(1, char::len_utf8));
    let path = &code[path_start..];
    if code[..path_start].trim_end().ends_with('|') {
        return Some((filters(close), offset - path.len()));
    }
    let steps: Vec<&str> = path.split('.').collect();
    let (last, above) = steps.split_last().unwrap_or((&"", &[]));
    Some((behind(context, above, close), offset - last.len()))
}

fn filters(close: &str) -> Vec<Item> {
    let known = [
        ("sh", "quotes for a shell"),
        ("join(',')", "the items of a list as one text"),
        ("length", "how many items or letters"),
        ("lower", "in lower case"),
        ("upper", "in upper case"),
    ];
    known.map(|(name, about)| leaf(CompletionItemKind::Function, name, about, close)).to_vec()
}

/// The names after the given steps.
fn behind(context: &Context<'_>, above: &[&str], close: &str) -> Vec<Item> {
    match above {
        [] => scopes(context),
        ["job"] => vec![leaf(CompletionItemKind::Field, "name", "the job's name", close)],
        ["role"] => [
            ("name", "this role's name"),
            ("instances", "how many instances it has"),
            ("gpu", "how many GPUs each instance gets"),
        ]
        .map(|(name, about)| leaf(CompletionItemKind::Field, name, about, close))
        .to_vec(),
        ["roles", _] => {
            vec![leaf(CompletionItemKind::Field, "instances", "how many instances the role has", close)]
        }
        ["distributed"] => {
            vec![leaf(CompletionItemKind::Field, "world_size", "how many processes take part", close)]
        }
        ["instance"] => {
            vec![leaf(CompletionItemKind::Field, "index", "this instance's number, from 0", close)]
        }
        ["data" | "outputs", _] => vec![
            leaf(CompletionItemKind::Field, "mount", "where the role sees it", close),
            leaf(CompletionItemKind::Field, "source", "where it comes from", close),
        ],
        ["ports"] => {
            let mut found = declared(context, "ports", close);
            let labels: Vec<String> = found.iter().map(|item| item.label.clone()).collect();
            found.extend(
                declared(context, "roles", close)
                    .into_iter()
                    .filter(|role| !labels.contains(&role.label) && ports_of(context, &role.label).is_some())
                    .map(|role| role.detail("the ports of the role")),
            );
            found
        }
        ["ports", role] => ports_of_role(context, role, close),
        [scope] => declared(context, scope, close),
        _ => vec![],
    }
}

fn scopes(context: &Context<'_>) -> Vec<Item> {
    let path: Vec<&str> =
        context.cursor.path.iter().map(|step| if is_index(step) { "*" } else { step }).collect();
    let here = scopes_at(&path);
    let known =
        |name: &str| Scope::parse(name).is_some_and(|scope| scope.is_early() || here.contains(&scope));
    let item = |(name, about): &(&str, &str)| {
        Item::new(CompletionItemKind::Module, name).insert(format!("{name}.$0")).detail(*about)
    };
    SCOPES.iter().filter(|(name, _)| known(name)).map(item).collect()
}

/// The names that the job declares for a scope.
fn declared(context: &Context<'_>, scope: &str, close: &str) -> Vec<Item> {
    let Some(kind) = names::kind_of(scope) else { return vec![] };
    let owner = names::owner(kind, &context.cursor.path);
    let alone;
    let mentions = if let Some(tree) = context.session.tree(context.uri) {
        goto::mentions(context.session, context.uri, tree)
    } else {
        // Only the declarations are used, and they need no positions.
        alone = names::names_of_job(context.names, "");
        &alone[..]
    };
    let mut found: Vec<Item> = vec![];
    // In a role, both the job's axes and its own are available.
    let is_known = |name: &names::Name| {
        name.kind == kind && (name.owner == owner || kind == names::Kind::Axis && name.owner.is_empty())
    };
    for mention in mentions.iter().filter(|it| it.declares && is_known(&it.name)) {
        let name = &mention.name.text;
        // A role with a matrix has no address and no number of instances of its own.
        let role = (kind == names::Kind::Role).then(|| context.names.root.get("roles")?.get(name)).flatten();
        if role.is_some_and(|role| role.get("matrix").is_some()) {
            continue;
        }
        if name.contains(MARK) || found.iter().any(|item| item.label == *name) {
            continue;
        }
        let about = about(context.names.root.get(root_of(scope)).and_then(|map| map.get(name)));
        found.push(match scope {
            "hosts" => leaf(CompletionItemKind::Variable, name, &about, close)
                .insert(format!("{name}[${{1:0}}]{close}")),
            "roles" | "data" | "outputs" => {
                Item::new(CompletionItemKind::Variable, name).insert(format!("{name}.$0")).detail(about)
            }
            _ => leaf(CompletionItemKind::Variable, name, &about, close),
        });
    }
    found
}

/// The ports that a role declares, if any.
fn ports_of<'a>(context: &Context<'a>, role: &str) -> Option<&'a Node> {
    let ports = context.names.root.get("roles")?.get(role)?.get("resources")?.get("ports")?;
    (!ports.entries().is_empty()).then_some(ports)
}

/// The ports of a role by label; with several instances each has its own, and an index selects one.
fn ports_of_role(context: &Context<'_>, role: &str, close: &str) -> Vec<Item> {
    let roles = context.names.root.get("roles");
    let instances = roles.and_then(|roles| roles.get(role)?.get("instances")?.to_scalar());
    let index = if instances.is_some_and(|count| count.text != "1") { "[${1:0}]" } else { "" };
    let item = |entry: &jobc_compiler::document::Entry| {
        let number = entry.value.to_scalar().map(|scalar| scalar.text).unwrap_or_default();
        leaf(CompletionItemKind::Variable, &entry.key, &number, close)
            .insert(format!("{}{index}{close}", entry.key))
    };
    let ports = ports_of(context, role).map(Node::entries).unwrap_or_default();
    ports.iter().filter(|entry| !entry.key.contains(MARK)).map(item).collect()
}

fn root_of(scope: &str) -> &str {
    if scope == "hosts" { "roles" } else { scope }
}

/// A short description of a value: the default or the description of a parameter.
fn about(node: Option<&Node>) -> String {
    let Some(node) = node else { return String::new() };
    if let Some(scalar) = node.to_scalar() {
        return scalar.text;
    }
    let text = |key: &str| node.get(key).and_then(Node::to_scalar).map(|scalar| scalar.text);
    [text("default"), text("mount"), text("description")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn leaf(kind: CompletionItemKind, name: &str, about: &str, close: &str) -> Item {
    Item::new(kind, name).insert(format!("{name}{close}")).detail(about)
}
