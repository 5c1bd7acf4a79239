//! Items that the schema does not contain: the names of a job, and data about GPUs, images and templates.

use camino::Utf8Path;
use jobc_compiler::document::{Document, Node};
use jobc_compiler::stdlib::{images, mig, models, providers};
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::cursor::{Cursor, MARK};
use super::item::Item;
use super::{known, template};
use crate::kind::Kind as FileKind;
use crate::schema::is_index;
use crate::session::Session;

pub(super) fn items(context: &Context<'_>) -> Vec<Item> {
    let path: Vec<&str> = context.cursor.path.iter().map(String::as_str).collect();
    match context.kind {
        FileKind::Targets => of_targets(context, &path),
        _ => of_job(context, &path),
    }
}

fn of_job(context: &Context<'_>, path: &[&str]) -> Vec<Item> {
    let cursor = context.cursor;
    let key = cursor.is_key;
    match path {
        ["roles", role, "needs"] if key => {
            keyed(context.before(role), "${1|succeeded,ready,started|}", cursor)
        }
        ["roles", role, "needs", at] if !key && is_index(at) => list_items(context.before(role), cursor),
        ["roles", role, "needs"] => in_brackets(context.before(role)),
        ["distributed", "roles"] if key => {
            keyed(context.names_of("roles", &[]), "${1|worker,chief,head,ps,evaluator,launcher|}", cursor)
        }
        ["distributed", "roles", at] if !key && is_index(at) => {
            list_items(context.names_of("roles", &[]), cursor)
        }
        ["distributed", "roles"] => in_brackets(context.names_of("roles", &[])),
        ["distributed", "launch"] => {
            let mut found =
                ["all", "first"].map(|word| Item::new(CompletionItemKind::EnumMember, word)).to_vec();
            found.extend(context.names_of("roles", &[]));
            found
        }
        ["roles", _, volumes @ ("data" | "outputs")] if key => {
            keyed(context.names_of(volumes, &[]), "\n  mount: ${1:/data}", cursor)
        }
        ["roles", _, volumes @ ("data" | "outputs"), at] if !key && is_index(at) => {
            list_items(context.names_of(volumes, &[]), cursor)
        }
        ["roles", _, volumes @ ("data" | "outputs")] => in_brackets(context.names_of(volumes, &[])),
        [.., "secret"] if !key => context.names_of("secrets", &[]),
        [.., "image", "secrets", _] | ["images", _, "secrets", _] if !key => {
            list_items(context.names_of("secrets", &[]), cursor)
        }
        [.., "image", "use"] | ["images", _, "use"] => context.names_of("images", &[]),
        ["image"] | ["images", _] | ["roles", _, "image"] if !key => image_references(context),
        ["image" | "images", .., "from" | "image"] | ["roles", _, "image", .., "from" | "image"]
            if path.last() == Some(&"image") || !path.contains(&"copy") =>
        {
            image_references(context).into_iter().filter(|item| item.label != "host").collect()
        }
        ["roles", role, "ready", "port"] | ["roles", role, "ready", "http", "port"] => {
            let ports =
                context.names.root.get("roles").and_then(|it| it.get(role)?.get("resources")?.get("ports"));
            declared(ports, CompletionItemKind::Variable, &[])
        }
        ["x-jobc-allow", at] if !key && is_index(at) => list_items(known::codes(context), cursor),
        ["x-jobc-allow"] if !key => in_brackets(known::codes(context)),
        ["roles", _, "resources", "gpu"] if !key => {
            let item = |(word, about): (&str, &str)| Item::new(CompletionItemKind::Value, word).detail(about);
            [("1", ""), ("all", "every GPU of the host"), ("0", "hides the GPUs of the host")]
                .map(item)
                .to_vec()
        }
        [matrix @ .., "include" | "exclude", at] if key && is_index(at) => {
            keyed(known::axes(context, matrix), "$0", cursor)
        }
        [matrix @ .., "include" | "exclude", at, axis] if !key && is_index(at) => {
            known::axis_values(context, matrix, axis)
        }
        ["uses"] => template::names(context, "job"),
        ["roles", _, "uses"] => template::names(context, "role"),
        ["with"] | ["roles", _, "with"] if key => template::parameters(context, path),
        ["with", _] | ["roles", _, "with", _] if !key => template::values(context, path),
        [.., "gpu", "model"] | [.., "gpu", "model", _] => gpu_models(),
        [.., "gpu", "share", "profile"] => {
            let gpu =
                path[..path.len() - 2].iter().try_fold(&cursor.document.root, |node, step| node.get(step));
            mig_profiles(gpu.and_then(|gpu| gpu.get("model")))
        }
        ["openpai", "roles"] if key => keyed(context.names_of("roles", &[]), "\n  $0", cursor),
        _ => vec![],
    }
}

fn of_targets(context: &Context<'_>, path: &[&str]) -> Vec<Item> {
    let cursor = context.cursor;
    let of_jobs = |keys: &[&str]| job_names(context.session, context, keys);
    match path {
        ["default", _] => {
            list_items(declared(context.names.root.get("targets"), CompletionItemKind::Variable, &[]), cursor)
        }
        ["targets", _, "backends", _] if !cursor.is_key => list_items(plugins(context), cursor),
        ["targets", _, "backends"] => in_brackets(plugins(context)),
        ["targets", _, "kubernetes", "gpu", "provider"] => gpu_providers(),
        ["targets", .., "cards", _, "model"] if !cursor.is_key => gpu_models(),
        ["targets", _, "kubernetes", "gpu", "models", _] => list_items(gpu_models(), cursor),
        ["targets", _, "kubernetes" | "openpai", "roles"] if cursor.is_key => {
            keyed(of_jobs(&["roles"]), "\n  $0", cursor)
        }
        ["targets", _, "kubernetes", "storage"] if cursor.is_key => {
            keyed(of_jobs(&["data", "outputs"]), "\n  ${1|pvc,nfs,host_path|}: $0", cursor)
        }
        ["targets", _, "oci" | "slurm", "storage"] if cursor.is_key => {
            keyed(of_jobs(&["data", "outputs"]), "${1:/mnt/}", cursor)
        }
        ["targets", _, "openpai", "storages", _, "provides"] => of_jobs(&["data", "outputs"]),
        _ => vec![],
    }
}

impl Context<'_> {
    /// The roles that a role may wait for: not itself, nor those that wait for it.
    fn before(&self, role: &str) -> Vec<Item> {
        let needs = |of: &str| -> Vec<String> {
            let needs = self.names.root.get("roles").and_then(|roles| roles.get(of)?.get("needs"));
            let (keys, items) = (needs.map_or(&[][..], Node::entries), needs.map_or(&[][..], Node::items));
            let items = items.iter().filter_map(Node::as_str);
            keys.iter().map(|entry| entry.key.as_str()).chain(items).map(str::to_owned).collect()
        };
        let waits = |of: &str| {
            let mut reached = needs(of);
            let mut at = 0;
            while let Some(next) = reached.get(at) {
                let more: Vec<String> =
                    needs(next).into_iter().filter(|name| !reached.contains(name)).collect();
                reached.extend(more);
                at += 1;
            }
            reached.iter().any(|name| name == role)
        };
        let others = self.names_of("roles", &[role]).into_iter();
        others.filter(|item| !waits(&item.label)).collect()
    }

    /// Whether a text is what stands at the cursor in the tree of names.
    fn is_typed(&self, text: &str) -> bool {
        let path = &self.cursor.path;
        let here = path.iter().try_fold(&self.names.root, |node, step| node.get(step));
        here.and_then(Node::as_str) == Some(text)
    }

    /// The names that a top-level map of the job declares.
    fn names_of(&self, key: &str, but: &[&str]) -> Vec<Item> {
        declared(self.names.root.get(key), CompletionItemKind::Variable, but)
    }
}

/// The keys of a map, each with a description.
fn declared(map: Option<&Node>, kind: CompletionItemKind, but: &[&str]) -> Vec<Item> {
    let mut found = vec![];
    for entry in map.map(Node::entries).unwrap_or_default() {
        if entry.key.contains(MARK) || but.contains(&entry.key.as_str()) {
            continue;
        }
        let text = |key: &str| entry.value.get(key).and_then(Node::to_scalar).map(|scalar| scalar.text);
        let about = ["description", "mount", "env", "file", "run"]
            .iter()
            .find_map(|key| text(key))
            .unwrap_or_default();
        let line = about.lines().next().unwrap_or_default().to_owned();
        found.push(Item::new(kind, &entry.key).detail(line));
    }
    found
}

/// The installed plug-in backends, next to the targets file and elsewhere.
fn plugins(context: &Context<'_>) -> Vec<Item> {
    let own = context.session.documents.get(context.uri).and_then(|open| open.path.as_deref());
    let found = context.session.plugins(own.and_then(Utf8Path::parent)).into_iter();
    found.map(|(name, about)| Item::new(CompletionItemKind::Module, &name).detail(about)).collect()
}

/// Names as items of a list, without the existing ones.
fn list_items(names: Vec<Item>, cursor: &Cursor) -> Vec<Item> {
    names.into_iter().filter(|item| !cursor.taken.contains(&item.label)).collect()
}

/// Names as keys of a map, each with the text that follows it.
fn keyed(names: Vec<Item>, value: &str, cursor: &Cursor) -> Vec<Item> {
    let blank = if value.starts_with('\n') { "" } else { " " };
    let insert = |item: Item| {
        let text =
            if cursor.has_colon { item.label.clone() } else { format!("{}:{blank}{value}", item.label) };
        item.insert(text)
    };
    list_items(names, cursor).into_iter().map(insert).collect()
}

/// Names where a list may begin, each as a list with one item.
fn in_brackets(names: Vec<Item>) -> Vec<Item> {
    names
        .into_iter()
        .map(|item| {
            let text = format!("[{}$0]", item.label);
            item.insert(text)
        })
        .collect()
}

/// The names that the open jobs of a targets file declare.
fn job_names(session: &Session<'_>, context: &Context<'_>, keys: &[&str]) -> Vec<Item> {
    let own = session.documents.get(context.uri).and_then(|open| open.path.clone());
    let mut found: Vec<Item> = vec![];
    for (job, open) in session.documents.iter().filter(|(_, open)| open.kind == FileKind::Job) {
        let Some(Document { root }) = session.tree(&job).map(|tree| &tree.document) else { continue };
        if session.targets_of(open) != own {
            continue;
        }
        for item in keys.iter().flat_map(|key| declared(root.get(key), CompletionItemKind::Variable, &[])) {
            if !found.iter().any(|known| known.label == item.label) {
                found.push(item);
            }
        }
    }
    found
}

fn gpu_models() -> Vec<Item> {
    let mut found = vec![];
    for model in models::all() {
        let about = format!("{}, compute capability {}", model.family, model.cc);
        found.push(Item::new(CompletionItemKind::Constant, &model.name).detail(about.clone()).rank(1));
        for size in
            model.variants.iter().map(|variant| variant.memory_gb).filter(|_| model.variants.len() > 1)
        {
            found.push(
                Item::new(CompletionItemKind::Constant, &format!("{}-{size}GB", model.name))
                    .detail(about.clone())
                    .rank(1),
            );
        }
    }
    found
}

/// The MIG profiles of a model, or of all models if none is given.
fn mig_profiles(model: Option<&Node>) -> Vec<Item> {
    let model = model.and_then(Node::as_str).and_then(models::find);
    let cards: Vec<&str> =
        model.iter().flat_map(models::ModelMatch::variants).filter_map(|v| v.mig.as_deref()).collect();
    let mut found: Vec<Item> = vec![];
    for name in mig::names() {
        let fitting: Vec<&str> =
            mig::cards_with(name).filter(|card| cards.is_empty() || cards.contains(card)).collect();
        let Some(first) = fitting.first() else { continue };
        let max = mig::profiles(first)
            .and_then(|all| all.iter().find(|p| p.name() == name))
            .map(mig::Profile::max_instances);
        let many = max.map_or_else(String::new, |n| format!("at most {n} on one card; "));
        found.push(
            Item::new(CompletionItemKind::Constant, name).detail(format!("{many}{}", fitting.join(", "))),
        );
    }
    found
}

fn gpu_providers() -> Vec<Item> {
    let item = |provider: &'static providers::Provider| {
        Item::new(CompletionItemKind::Constant, &provider.name).detail(provider.about.as_str())
    };
    providers::all().iter().filter(|provider| provider.unserved.is_none()).map(item).collect()
}

/// Images: those of the job, then tags that jobc knows.
fn image_references(context: &Context<'_>) -> Vec<Item> {
    let mut found: Vec<Item> = vec![];
    let mut add = |item: Item| {
        if !found.iter().any(|known| known.label == item.label) {
            found.push(item);
        }
    };
    // The last tree may have what is typed here.
    let typed = |text: &str| text.ends_with(':') || context.is_typed(text);
    for reference in written_images(&context.names.root).into_iter().filter(|text| !typed(text)) {
        add(Item::new(CompletionItemKind::Value, &reference).detail("in this job"));
    }
    for reference in images::known_references() {
        let facts = images::facts(&reference).unwrap_or_default();
        let cuda = facts.cuda.map(|version| format!("CUDA {version}"));
        let python = facts.python.map(|version| format!("Python {version}"));
        let details: Vec<String> = [cuda, python, facts.os].into_iter().flatten().collect();
        add(Item::new(CompletionItemKind::Value, &reference).detail(details.join(", ")).rank(1));
    }
    add(Item::new(CompletionItemKind::Keyword, "host")
        .detail("this host's own root file system, local runs only")
        .rank(1));
    found
}

fn written_images(root: &Node) -> Vec<String> {
    let mut nodes: Vec<&Node> = root.get("image").into_iter().collect();
    nodes.extend(root.get("images").map(Node::entries).unwrap_or_default().iter().map(|entry| &entry.value));
    let roles = root.get("roles").map(Node::entries).unwrap_or_default();
    nodes.extend(roles.iter().filter_map(|entry| entry.value.get("image")));
    let reference = |node: &Node| node.as_str().or_else(|| node.get("from")?.as_str()).map(str::to_owned);
    nodes
        .into_iter()
        .filter_map(reference)
        .filter(|text| !text.contains(MARK) && text.contains(':'))
        .collect()
}
