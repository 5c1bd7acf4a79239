//! Ports, volumes, builds, secrets and configurations of a service.

use serde_json::json;

use crate::document::Node;
use crate::source::Span;

use super::super::super::container::{self, Mount};
use super::super::super::nodes::{json, string};
use super::super::super::values::{pairs, scalar, text_at};
use super::{Service, dockerfile};

impl Service<'_, '_, '_> {
    pub(super) fn ports(&mut self, node: &Node) {
        for item in node.items() {
            let text = scalar(item).unwrap_or_else(|| {
                let of = |key: &str| text_at(item, key);
                let published = of("published").map(|port| port + ":").unwrap_or_default();
                let protocol = of("protocol").unwrap_or("tcp".to_owned());
                format!("{published}{}/{protocol}", of("target").unwrap_or_default())
            });
            let text = self.text(&text, item.span);
            container::port(&mut self.role, &text, item.span);
        }
    }

    pub(super) fn volumes(&mut self, node: &Node) {
        for item in node.items() {
            let part = item.span;
            if let Some(text) = scalar(item) {
                let text = self.text(&text, part);
                self.mounted.extend(container::volume(self.role.draft, &text, part));
                continue;
            }
            let mut of = |key: &str| text_at(item, key).map(|text| self.text(&text, part));
            let (kind, from, target) = (of("type"), of("source"), of("target").unwrap_or_default());
            let read_only = item.get("read_only").is_some_and(|flag| flag.to_json() == true);
            let is_volume = kind.as_deref() == Some("volume");
            match kind.as_deref() {
                Some("tmpfs") => {
                    let size = item.get("tmpfs").and_then(|tmpfs| text_at(tmpfs, "size"));
                    self.mounted.push(container::tmpfs(self.role.draft, &target, size.as_deref(), part));
                }
                Some("bind" | "volume") => {
                    let mount = Mount { source: from.as_deref(), target: &target, read_only, is_volume };
                    self.mounted.extend(container::mount(self.role.draft, &mount, part));
                }
                kind => self.role.draft.refuse(
                    part,
                    format!("a mount of type `{}`", kind.unwrap_or("none")),
                    "write a directory: `SOURCE:TARGET`",
                ),
            }
        }
    }

    pub(super) fn build(&mut self, node: &Node, part: Span) {
        let context = scalar(node).or_else(|| text_at(node, "context")).unwrap_or(".".to_owned());
        let context = self.text(&context, part);
        let file = text_at(node, "dockerfile").unwrap_or("Dockerfile".to_owned());
        let file = self.text(&file, part);
        let directory = context.trim_start_matches("./").trim_end_matches('/');
        let path =
            if directory.is_empty() || directory == "." { file } else { format!("{directory}/{file}") };
        let mut image = json!({ "dockerfile": path });
        if !directory.is_empty() && directory != "." {
            image["context"] = json!(context);
        }
        if let Some(inline) = node.entries().iter().find(|entry| entry.key == "dockerfile_inline") {
            let text = self.text(&scalar(&inline.value).unwrap_or_default(), inline.key_span);
            image = dockerfile::block(&text, directory, inline.key_span, self).unwrap_or(image);
        }
        for entry in node.entries() {
            let at = entry.key_span;
            match entry.key.as_str() {
                "context" | "dockerfile" | "dockerfile_inline" => {}
                "target" => image["target"] = json!(scalar(&entry.value)),
                "args" => {
                    for (name, value, at) in pairs(&entry.value) {
                        let value = match value {
                            Some(value) => self.text(&value, at),
                            None => container::param(self.role.draft, &name, None, at),
                        };
                        image["args"][&name] = json!(value);
                    }
                }
                "additional_contexts" | "ssh" | "secrets" => {
                    self.role.draft.refuse(
                        at,
                        format!("`{}` of a build", entry.key),
                        "write a Dockerfile, and its secrets as `image: {secrets: …}` in a job file",
                    );
                }
                _ => self.role.draft.note(at, "a setting of the builder"),
            }
        }
        let path: &[&str] =
            if self.project.is_single { &["image"] } else { &["roles", self.role.name, "image"] };
        self.role.draft.field(path, part, json(part, &image));
    }

    /// Secrets and configurations as files.
    pub(super) fn files(&mut self, node: &Node, section: &str, part: Span) {
        for item in node.items() {
            let at = item.span;
            let Some(name) = scalar(item).or_else(|| text_at(item, "source")) else { continue };
            let default =
                if section == "secrets" { format!("/run/secrets/{name}") } else { format!("/{name}") };
            let target = text_at(item, "target").unwrap_or(default);
            let target = if target.starts_with('/') { target } else { format!("/run/secrets/{target}") };
            let definition = self.project.root.get(section).and_then(|all| all.get(&name));
            let of = |key: &str| definition.and_then(|definition| text_at(definition, key));
            let content = match (section, of("file"), of("environment"), of("content")) {
                ("secrets", Some(file), ..) => {
                    self.role.draft.set(&["secrets", &name, "file"], at, string(at, file));
                    json!({ "secret": name })
                }
                ("secrets", None, Some(variable), _) => {
                    self.role.draft.set(&["secrets", &name, "env"], at, string(at, variable));
                    json!({ "secret": name })
                }
                (_, Some(file), ..) => json!({ "from": file }),
                (_, None, None, Some(content)) => json!({ "content": self.text(&content, at) }),
                _ => {
                    self.role.draft.refuse(
                        at,
                        format!("`{name}` of `{section}` is kept by Swarm"),
                        "write `file` or `environment` in its definition",
                    );
                    continue;
                }
            };
            self.role.field(&["files", &target], at, json(at, &content));
        }
        if node.items().is_empty() {
            self.role.draft.note(part, "empty: the default");
        }
    }
}
