//! The names of a file: where each is declared and where it is used.

mod targets;

use std::collections::BTreeSet;
use std::ops::Range;

use jobc_compiler::document::{Document, Node, Value};
use jobc_compiler::expression::{self, CodeSpan};
use jobc_compiler::source::{Source, Sources, Span};

pub(crate) use targets::names_of_targets;

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Param,
    Axis,
    Role,
    Data,
    Output,
    Secret,
    Image,
    /// A port of a role.
    Port,
    /// A build argument of an image.
    Argument,
    /// A target, in `targets.yaml`.
    Target,
}

impl Kind {
    /// The kind as a word in a sentence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Param => "parameter",
            Self::Axis => "axis of the matrix",
            Self::Role => "role",
            Self::Data => "data",
            Self::Output => "output",
            Self::Secret => "secret",
            Self::Image => "image",
            Self::Port => "port",
            Self::Argument => "build argument",
            Self::Target => "target",
        }
    }
}

/// A name. Names with the same text are different if their kinds or owners are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) kind: Kind,
    /// The role of a port or of an axis, or the image of an argument; empty for names of the whole job.
    pub(crate) owner: String,
    pub(crate) text: String,
}

/// A place of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) name: Name,
    /// The range of the name, without quotes.
    pub(crate) range: Range<usize>,
    /// Whether that range is exactly the name: a name with escapes cannot be replaced.
    pub(crate) exact: bool,
    /// Whether it is a declaration.
    pub(crate) declares: bool,
}

/// The names of a job file, in any order.
pub(crate) fn names_of_job(document: &Document, text: &str) -> Vec<Mention> {
    let mut found = NameCollector::new(text);
    let root = &document.root;
    for (key, kind) in [
        ("params", Kind::Param),
        ("secrets", Kind::Secret),
        ("images", Kind::Image),
        ("data", Kind::Data),
        ("outputs", Kind::Output),
        ("roles", Kind::Role),
    ] {
        found.keys(root.get(key), kind, "", true);
    }
    found.axes(root, "");
    for entry in root.get("registries").map(Node::entries).unwrap_or_default() {
        found.value(entry.value.get("password").and_then(|it| it.get("secret")), Kind::Secret, "");
    }
    for key in ["data", "outputs"] {
        for entry in root.get(key).map(Node::entries).unwrap_or_default() {
            found.value(entry.value.get("secret"), Kind::Secret, "");
        }
    }
    found.image(root.get("image"), "image");
    for entry in root.get("images").map(Node::entries).unwrap_or_default() {
        found.image(Some(&entry.value), &format!("images/{}", entry.key));
    }
    if let Some(distributed) = root.get("distributed") {
        found.add_list(distributed.get("roles"), Kind::Role);
        let launch = distributed.get("launch").filter(|it| !matches!(it.as_str(), Some("all" | "first")));
        found.value(launch, Kind::Role, "");
    }
    found.keys(root.get("openpai").and_then(|it| it.get("roles")), Kind::Role, "", false);
    for entry in root.get("roles").map(Node::entries).unwrap_or_default() {
        found.role(&entry.key, &entry.value);
    }
    found.expressions(root, &mut vec![]);
    found.mentions
}

/// The mention at an offset, or one that ends there, where the cursor is while typing.
pub(crate) fn at(mentions: &[Mention], offset: usize) -> Option<&Mention> {
    mentions.iter().find(|mention| mention.range.start <= offset && offset <= mention.range.end)
}

/// Collects the names of one text.
struct NameCollector<'a> {
    text: &'a str,
    sources: Sources,
    mentions: Vec<Mention>,
    /// The axes of roles: role and axis.
    axes_of_roles: BTreeSet<(String, String)>,
}

impl<'a> NameCollector<'a> {
    fn new(text: &'a str) -> Self {
        // `CodeSpan::find` reads the text from sources; the path is never shown.
        let mut sources = Sources::new();
        sources.add(Source::new("", text));
        Self { text, sources, mentions: vec![], axes_of_roles: BTreeSet::new() }
    }

    fn push(&mut self, kind: Kind, owner: &str, name: &str, span: Span, declares: bool) {
        let raw = self.text.get(span.range()).unwrap_or_default();
        let inner = raw.strip_prefix(['"', '\'']).and_then(|raw| raw.strip_suffix(['"', '\'']));
        let (start, exact) = match inner {
            Some(inner) => (span.start as usize + 1, inner == name),
            None => (span.start as usize, raw == name),
        };
        let range = if exact { start..start + name.len() } else { span.range() };
        let name = Name { kind, owner: owner.to_owned(), text: name.to_owned() };
        self.mentions.push(Mention { name, range, exact, declares });
    }

    /// Every key of a map.
    fn keys(&mut self, map: Option<&Node>, kind: Kind, owner: &str, declares: bool) {
        for entry in map.map(Node::entries).unwrap_or_default() {
            self.push(kind, owner, &entry.key, entry.key_span, declares);
        }
    }

    /// A string that is a name.
    fn value(&mut self, node: Option<&Node>, kind: Kind, owner: &str) {
        if let Some((node, name)) = node.and_then(|node| Some((node, node.as_str()?)))
            && !expression::has_expression(name)
        {
            self.push(kind, owner, name, node.span, false);
        }
    }

    /// A list of names, or a map from names.
    fn add_list(&mut self, node: Option<&Node>, kind: Kind) {
        for item in node.map(Node::items).unwrap_or_default() {
            self.value(Some(item), kind, "");
        }
        self.keys(node, kind, "", false);
    }

    /// The axes of the matrix of the job or of a role.
    fn axes(&mut self, parent: &Node, owner: &str) {
        let matrix = parent.get("matrix");
        let axes = matrix.and_then(|it| it.get("axes").filter(|axes| is_map(axes))).or(matrix);
        self.keys(axes, Kind::Axis, owner, true);
        let names = axes.filter(|_| !owner.is_empty()).map(Node::entries).unwrap_or_default();
        self.axes_of_roles.extend(names.iter().map(|entry| (owner.to_owned(), entry.key.clone())));
    }

    fn role(&mut self, role: &str, node: &Node) {
        self.axes(node, role);
        self.add_list(node.get("needs"), Kind::Role);
        self.add_list(node.get("data"), Kind::Data);
        self.add_list(node.get("outputs"), Kind::Output);
        self.image(node.get("image"), &format!("roles/{role}/image"));
        self.keys(node.get("resources").and_then(|it| it.get("ports")), Kind::Port, role, true);
        if let Some(ready) = node.get("ready") {
            self.value(ready.get("port"), Kind::Port, role);
            self.value(ready.get("http").and_then(|it| it.get("port")), Kind::Port, role);
        }
        for file in node.get("files").map(Node::entries).unwrap_or_default() {
            self.value(file.value.get("secret"), Kind::Secret, "");
        }
    }

    fn image(&mut self, node: Option<&Node>, place: &str) {
        let Some(node) = node else { return };
        self.value(node.get("use"), Kind::Image, "");
        for secret in node.get("secrets").map(Node::items).unwrap_or_default() {
            self.value(Some(secret), Kind::Secret, "");
        }
        // The arguments of a Dockerfile are declared in the Dockerfile.
        if node.get("from").is_some() {
            self.keys(node.get("args"), Kind::Argument, place, true);
        }
    }

    /// The names in every `${{ }}` below a node.
    fn expressions(&mut self, node: &Node, path: &mut Vec<String>) {
        match &node.value {
            Value::String(text) if expression::has_expression(text) => {
                self.text_with_expressions(node, text, path);
            }
            Value::Mapping(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    self.expressions(&entry.value, path);
                    path.pop();
                }
            }
            Value::Sequence(items) => {
                for item in items {
                    self.expressions(item, path);
                }
            }
            _ => {}
        }
    }

    fn text_with_expressions(&mut self, node: &Node, text: &str, path: &[String]) {
        for expression in expression::expressions(text) {
            // In a multi-line text with escapes, only the whole expression has a position.
            let code =
                CodeSpan::find(&self.sources, Span { source: self.job(), ..node.span }, text, &expression);
            if !code.exact {
                continue;
            }
            for used in expression::paths(expression.code) {
                let (Some(kind), Some(step)) = (kind_of(used.root()), used.steps.get(1)) else { continue };
                let Some(name) = used.name(1) else { continue };
                let span = code.part(expression.code, Some(&step.range));
                // `ports.<role>.<label>` is a port of another role.
                if let (Kind::Port, Some(label), Some(below)) = (kind, used.name(2), used.steps.get(2)) {
                    self.push(Kind::Role, "", name, span, false);
                    let span = code.part(expression.code, Some(&below.range));
                    self.push(Kind::Port, name, label, span, false);
                    continue;
                }
                let mut owner = owner(kind, path);
                // An axis that the role does not have is the job's.
                if kind == Kind::Axis && !self.axes_of_roles.contains(&(owner.clone(), name.to_owned())) {
                    owner.clear();
                }
                self.push(kind, &owner, name, span, false);
            }
        }
    }

    fn job(&self) -> jobc_compiler::source::SourceId {
        self.sources.iter().next().map(|(id, _)| id).unwrap_or_default()
    }
}

/// The kind of the names in a scope.
pub(crate) fn kind_of(scope: &str) -> Option<Kind> {
    Some(match scope {
        "params" => Kind::Param,
        "matrix" => Kind::Axis,
        "hosts" | "roles" => Kind::Role,
        "data" => Kind::Data,
        "outputs" => Kind::Output,
        "secrets" => Kind::Secret,
        "ports" => Kind::Port,
        "args" => Kind::Argument,
        _ => return None,
    })
}

/// The owner of a name at a place of the job: the role or the image there.
pub(crate) fn owner(kind: Kind, path: &[String]) -> String {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (kind, &path[..]) {
        (Kind::Port | Kind::Axis, ["roles", role, ..]) => (*role).to_owned(),
        (Kind::Argument, ["image", ..]) => "image".to_owned(),
        (Kind::Argument, ["images", name, ..]) => format!("images/{name}"),
        (Kind::Argument, ["roles", role, "image", ..]) => format!("roles/{role}/image"),
        _ => String::new(),
    }
}

fn is_map(node: &Node) -> bool {
    matches!(node.value, Value::Mapping(_))
}
