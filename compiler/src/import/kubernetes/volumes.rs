//! Volumes that a container mounts: `data`, `outputs`, `files`, and memory at /dev/shm.

use serde_json::{Value as Json, json};

use crate::document::{Node, Value};
use crate::openpai::converted;
use crate::source::Span;

use super::super::keyed::only;
use super::super::nodes::{json as node, string};
use super::super::values::{scalar, text_at, text_in};
use super::context::Use;
use super::env::{self, declared};
use super::reader::{Pod, named};
use super::resources::memory;

/// Fields of a mount.
const MOUNT: [&str; 7] =
    ["mountPath", "mountPropagation", "name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"];

/// Volumes that jobc writes for fields of a job; its others it writes again by itself.
const OF_JOBC: [&str; 2] = ["jobc-files", "jobc-shm"];

/// Reads `volumeMounts`.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, list: &Node) {
    for mount in list.items() {
        let part = mount.span;
        let name = text_at(mount, "name").unwrap_or_default();
        let Some(target) = text_at(mount, "mountPath") else {
            pod.role.draft.invalid(part, format!("the mount of `{name}` has no `mountPath`"), "");
            continue;
        };
        only(mount, &MOUNT, "a mount", pod.role.draft);
        if let Some(entry) = mount.entries().iter().find(|entry| entry.key == "subPathExpr") {
            pod.role.draft.changed(
                entry.key_span,
                format!("each instance mounts all of `{name}`, not a directory of its own"),
                format!("write the path in the command: `{}/$JOBC_INDEX`", target.trim_end_matches('/')),
            );
        }
        if target.starts_with("/etc/jobc/") || name.starts_with("jobc-") && !OF_JOBC.contains(&name.as_str())
        {
            // What jobc wrote into a manifest.
            pod.role.draft.note(part, "jobc sets it up");
            if let Some(volume) = named(pod.spec.get("volumes"), &name) {
                pod.role.draft.note(volume.span, "jobc sets it up");
            }
            continue;
        }
        let volumes = pod.spec.get("volumes");
        let claim = pod.context.claims.iter().find(|(claim, _)| *claim == name).map(|(_, size)| size.clone());
        match (named(volumes, &name).cloned(), claim) {
            (Some(volume), _) => Mounting { pod, mount, target: &target, part }.volume(&volume, &name),
            (None, Some(None)) => {
                let claim = format!("pvc:{name}-{}", pod.context.job);
                Mounting { pod, mount, target: &target, part }.place(&name, &claim, false, part);
            }
            (None, Some(Some(size))) => {
                let directory = super::super::nodes::json(part, &json!({ "sizeLimit": size }));
                Mounting { pod, mount, target: &target, part }.empty(&directory, &name, part);
            }
            (None, None) if pod.context.kind.name == "RayJob" => {
                let message = format!("only the operator makes the volume `{name}`");
                pod.role.draft.changed(part, message, "write it as `data` or `files` of the role");
            }
            (None, None) => pod.role.draft.invalid(part, format!("the pod has no volume `{name}`"), ""),
        }
    }
}

/// A mount that is being read.
struct Mounting<'p, 'c, 'd, 's> {
    pod: &'p mut Pod<'c, 'd, 's>,
    mount: &'p Node,
    target: &'p str,
    part: Span,
}

impl Mounting<'_, '_, '_, '_> {
    /// Refuses a volume, and accounts for its mount.
    fn refuse(&mut self, volume: Span, part: Span, what: impl Into<String>, instead: &str) {
        let draft = &mut *self.pod.role.draft;
        draft.refuse(part, what, instead);
        draft.note(volume, "its source is reported");
        draft.note(self.part, "the volume is reported");
    }

    fn volume(&mut self, volume: &Node, name: &str) {
        let Some(entry) = volume.entries().iter().find(|entry| entry.key != "name") else {
            // A volume without a source is an empty directory.
            if let Some(name) = self.shared(name) {
                return self.handed(&name, volume.span);
            }
            return self.entry("data", name, &json!({"source": "instance:", "writable": true}), volume.span);
        };
        let (kind, part) = (&entry.value, entry.key_span);
        if let Some(second) = volume.entries().iter().filter(|entry| entry.key != "name").nth(1) {
            let what = format!("the volume `{name}` has several sources");
            return self.refuse(volume.span, second.key_span, what, "write one of them");
        }
        let of = |key: &str| text_at(kind, key).unwrap_or_default();
        let is_on =
            |node: &Node, key: &str| node.get(key).is_some_and(|flag| flag.value == Value::Bool(true));
        let read_only = is_on(self.mount, "readOnly") || is_on(kind, "readOnly");
        match entry.key.as_str() {
            "emptyDir" => match self.shared(name) {
                Some(name) => self.handed(&name, volume.span),
                None => self.empty(kind, name, volume.span),
            },
            "persistentVolumeClaim" => {
                self.pod.context.objects.get(
                    "PersistentVolumeClaim",
                    &of("claimName"),
                    &format!("data.{name}"),
                );
                let source = format!("pvc:{}", of("claimName"));
                self.place(name, &source, read_only, volume.span);
            }
            "nfs" => {
                let source = format!("nfs://{}{}", of("server"), of("path"));
                self.place(name, &source, read_only, volume.span);
            }
            "hostPath" if of("path").trim_end_matches('/') == "/dev/shm" || self.target == "/dev/shm" => {
                self.pod.role.draft.changed(
                    self.part,
                    "the memory of the host is not shared",
                    "write the size that the program needs: `resources: {shm: 8GiB}`",
                );
                self.pod.role.draft.note(volume.span, "the mount is reported");
            }
            "hostPath" if of("path").starts_with("/dev/") && self.is_privileged() => {
                let path = of("path");
                self.pod.role.push(&["resources", "devices"], part, string(part, &path));
                let to = ["kubernetes", "devices", path.as_str()];
                self.pod.role.draft.need_of_target(&to, part, string(part, "hostPath"));
                self.pod.role.draft.account.field(self.part, "resources.devices");
            }
            "hostPath" if of("path").starts_with("/dev/") || of("path") == "/dev" => {
                self.refuse(
                    volume.span,
                    part,
                    format!("device nodes of the host, `{}`", of("path")),
                    "write each as `resources: {devices: [/dev/…]}`; GPUs come with `gpu`",
                );
            }
            "hostPath" => {
                let source = of("path");
                let value = Node { span: part, value: Value::Bool(true) };
                self.pod.role.draft.target(&["kubernetes", "host_paths"], part, value);
                let mut rules = json!({ "source": source });
                if !read_only {
                    rules["writable"] = json!(true);
                }
                let creates = of("type") == "DirectoryOrCreate" && !read_only;
                if creates {
                    return self.entry("outputs", name, &json!({ "source": source }), volume.span);
                }
                self.entry("data", name, &rules, volume.span);
            }
            "configMap" => self.files("ConfigMap", &of("name"), kind, volume.span),
            "secret" => self.files("Secret", &of("secretName"), kind, volume.span),
            "ephemeral" => {
                let path = ["volumeClaimTemplate", "spec", "resources", "requests", "storage"];
                let amount = text_in(kind, &path).and_then(|text| memory(&text)).unwrap_or_default();
                let rules = json!({"source": format!("instance:{amount}"), "writable": true});
                let own = self.entry_name("data", name, &rules);
                let class = text_in(kind, &["volumeClaimTemplate", "spec", "storageClassName"]);
                let claim = class.map_or(json!({}), |class| json!({ "class": class }));
                let path = ["kubernetes", "storage", own.as_str(), "claim"];
                self.pod.role.draft.target(&path, part, node(part, &claim));
                self.entry("data", name, &rules, volume.span);
            }
            "gitRepo" => {
                let rules =
                    json!({"source": format!("git+{}", of("repository")), "reference": of("revision")});
                self.entry("data", name, &rules, volume.span);
            }
            "image" => {
                self.refuse(volume.span, part, "files of another image", "copy them in an `image` block");
            }
            "downwardAPI" => self.downward(kind, volume.span),
            "projected" => self.projected(kind, volume.span),
            kind => {
                let driver = text_at(&entry.value, "driver").unwrap_or(kind.to_owned());
                self.pod.role.draft.changed(
                    part,
                    format!("the volume of `{driver}` becomes the claim `{name}`"),
                    "create a PersistentVolume with this volume and the claim, or write an address such as `s3://BUCKET/PATH` as `source`",
                );
                self.place(name, &format!("pvc:{}", claim_name(name)), read_only, volume.span);
            }
        }
    }

    /// Whether the program may open every device of the host.
    fn is_privileged(&self) -> bool {
        let containers = self.pod.spec.get("containers").map_or(&[][..], Node::items);
        containers.iter().any(|container| {
            text_in(container, &["securityContext", "privileged"]).as_deref() == Some("true")
        })
    }

    /// Data where it is only read, else an output.
    fn place(&mut self, name: &str, source: &str, read_only: bool, volume: Span) {
        self.entry(if read_only { "data" } else { "outputs" }, name, &json!({ "source": source }), volume);
    }

    /// An empty directory, or memory.
    fn empty(&mut self, kind: &Node, name: &str, volume: Span) {
        let limit = text_at(kind, "sizeLimit").and_then(|text| memory(&text));
        let is_memory = text_at(kind, "medium").is_some_and(|medium| medium == "Memory");
        let draft = &mut *self.pod.role.draft;
        if self.target == "/dev/shm" {
            draft.account.field(volume, format!("roles.{}.resources.shm", self.pod.role.name));
            // Without a limit it is as large as the memory of the container.
            let of_role = ["roles", self.pod.role.name, "resources", "memory"];
            let size = limit.or_else(|| draft.get(&of_role).and_then(Node::as_str).map(str::to_owned));
            return match size {
                Some(size) => self.pod.role.field(&["resources", "shm"], self.part, string(self.part, size)),
                None => draft.changed(
                    self.part,
                    "the size of /dev/shm is not written",
                    "write `sizeLimit: 8Gi`, which is `resources: {shm: 8GiB}`",
                ),
            };
        }
        let source = match (is_memory, limit) {
            (true, Some(limit)) => format!("memory:{limit}"),
            (true, None) => {
                draft.changed(
                    self.part,
                    "a directory in memory without a size is one on disk",
                    "write `sizeLimit`, for one in memory",
                );
                "instance:".to_owned()
            }
            (false, limit) => format!("instance:{}", limit.unwrap_or_default()),
        };
        self.entry("data", name, &json!({"source": source, "writable": true}), volume);
    }

    /// The name of the directory that a volume is, where several containers of the pod mount it.
    fn shared(&self, volume: &str) -> Option<String> {
        let own = self.pod.context.handed.get(self.pod.role.name)?;
        own.get(volume).filter(|_| self.target != "/dev/shm").cloned()
    }

    /// A directory that one role hands to another, wherever each mounts it.
    fn handed(&mut self, name: &str, volume: Span) {
        let name = name.to_owned();
        let draft = &mut *self.pod.role.draft;
        let known = draft.get(&["data", &name, "mount"]).and_then(Node::as_str).map(str::to_owned);
        if known.is_none() {
            for (key, value) in
                [("source", json!("job:")), ("mount", json!(self.target)), ("writable", json!(true))]
            {
                draft.set(&["data", &name, key], self.part, node(self.part, &value));
            }
            draft.need_of_target(&["kubernetes", "storage", &name, "pvc"], volume, string(volume, &name));
        }
        draft.account.field(self.part, format!("data.{name}"));
        draft.account.field(volume, format!("data.{name}"));
        let elsewhere = known.filter(|known| known != self.target);
        let changes = elsewhere.map(|_| ("mount", self.target.to_owned(), self.part)).into_iter();
        self.pod.mounted.push((name, changes.chain(self.subpath()).collect()));
    }

    /// The directory of the volume that is mounted.
    fn subpath(&self) -> Option<(&'static str, String, Span)> {
        text_at(self.mount, "subPath").map(|path| ("subpath", path, self.part))
    }

    /// Writes an entry of `data` or `outputs`; roles that mount the same share it.
    fn entry(&mut self, section: &str, name: &str, rules: &Json, volume: Span) {
        let rules = self.rules(rules);
        let name = self.entry_name(section, name, &rules);
        let draft = &mut *self.pod.role.draft;
        if draft.get(&[section, &name]).is_none() {
            for (key, value) in rules.as_object().into_iter().flatten() {
                draft.set(&[section, &name, key], self.part, node(self.part, value));
            }
        }
        let path = format!("{section}.{name}");
        draft.account.field(self.part, &path);
        draft.account.field(volume, &path);
        self.pod.mounted.push((name, self.subpath().into_iter().collect()));
    }

    fn rules(&self, rules: &Json) -> Json {
        let mut rules = rules.clone();
        rules["mount"] = json!(self.target);
        rules
    }

    /// The name of an entry: that of the volume, with a number if another has it.
    fn entry_name(&self, section: &str, name: &str, rules: &Json) -> String {
        let rules = self.rules(rules);
        let base = converted(name, 28, true).unwrap_or("files".to_owned());
        let draft = &self.pod.role.draft;
        let is_free = |name: &str| {
            let other = if section == "data" { "outputs" } else { "data" };
            draft.get(&[other, name]).is_none()
                && draft.get(&[section, name]).is_none_or(|known| known.to_json() == rules)
        };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        std::iter::once(base.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or(base)
    }

    /// Several sources of files at one path.
    fn projected(&mut self, kind: &Node, volume: Span) {
        only(kind, &["defaultMode", "sources"], "`projected`", self.pod.role.draft);
        let sources = kind.get("sources").map_or(&[][..], Node::items);
        for source in sources.iter().flat_map(Node::entries) {
            let name = text_at(&source.value, "name").unwrap_or_default();
            match source.key.as_str() {
                "configMap" => self.files("ConfigMap", &name, &source.value, source.key_span),
                "secret" => self.files("Secret", &name, &source.value, source.key_span),
                "downwardAPI" => self.downward(&source.value, source.key_span),
                key => self.pod.role.draft.changed(
                    source.key_span,
                    format!("no `{key}` is mounted at `{}`", self.target),
                    "`kubernetes: {service_account: NAME}` of a target is who the pods are",
                ),
            }
        }
        let path = format!("roles.{}.files", self.pod.role.name);
        self.pod.role.draft.account.field(self.part, &path);
        self.pod.role.draft.account.field(volume, &path);
    }

    /// Fields of the pod, each a file.
    fn downward(&mut self, kind: &Node, volume: Span) {
        let role = self.pod.role.name;
        only(kind, &["defaultMode", "items"], "`downwardAPI`", self.pod.role.draft);
        for item in kind.get("items").map_or(&[][..], Node::items) {
            let path = text_at(item, "path").unwrap_or_default();
            let field = text_in(item, &["fieldRef", "fieldPath"]);
            // A file is the same for all instances.
            let value = field
                .as_deref()
                .and_then(env::expression)
                .filter(|expression| !expression.contains("instance."))
                .map(str::to_owned);
            let value = value.or_else(|| env::amount(self.pod, item.get("resourceFieldRef")?));
            if let Some(value) = value {
                let target = format!("{}/{path}", self.target.trim_end_matches('/'));
                let file = node(item.span, &json!({ "content": value }));
                self.pod.role.draft.field(&["roles", role, "files", &target], item.span, file);
            } else {
                let what = field.unwrap_or("the amount".to_owned());
                self.pod.role.draft.changed(
                    item.span,
                    format!("the file `{path}` is not written: `{what}` of the pod is not known to a job"),
                    "/etc/jobc/job.json describes the job; `$JOBC_INDEX` and `$JOBC_ROLE` are the instance",
                );
            }
        }
        self.pod.role.draft.account.field(volume, format!("roles.{role}.files"));
        self.pod.role.draft.account.field(self.part, format!("roles.{role}.files"));
    }

    /// The keys of a ConfigMap or a Secret, each a file.
    fn files(&mut self, kind: &str, object: &str, source: &Node, volume: Span) {
        let items = source.get("items").map_or(&[][..], Node::items);
        let listed: Vec<(String, String)> =
            items.iter().filter_map(|item| Some((text_at(item, "key")?, text_at(item, "path")?))).collect();
        let role = self.pod.role.name;
        let known = self.pod.context.objects.keys(kind, object, "files");
        let sub = text_at(self.mount, "subPath");
        let all = if listed.is_empty() {
            known.clone().map(|keys| keys.into_iter().map(|key| (key.clone(), key)).collect())
        } else {
            Some(listed)
        };
        // A single key that is mounted at a path.
        let all =
            all.or_else(|| sub.clone().filter(|_| kind == "Secret").map(|key| vec![(key.clone(), key)]));
        let Some(all) = all.filter(|_| kind == "Secret" || known.is_some()) else {
            let is_optional = source.get("optional").is_some_and(|flag| flag.value == Value::Bool(true));
            if is_optional {
                self.pod.role.draft.note(volume, "optional, and not in the file");
                return self.pod.role.draft.note(self.part, "optional, and not in the file");
            }
            self.pod.role.draft.note(volume, "its mount is reported");
            return self.pod.role.draft.lacks(
                self.part,
                format!("the {kind} `{object}` is not in the file"),
                format!("its keys are files at `{}`: {}", self.target, env::fetched(kind, object)),
            );
        };
        self.pod.role.draft.account.field(volume, format!("roles.{role}.files"));
        self.pod.role.draft.account.field(self.part, format!("roles.{role}.files"));
        let default = source.get("defaultMode").and_then(mode);
        for (key, path) in all {
            let target = match &sub {
                Some(sub) if *sub == path => self.target.to_owned(),
                Some(_) => continue,
                None => format!("{}/{path}", self.target.trim_end_matches('/')),
            };
            let own = items.iter().find(|item| text_at(item, "key").as_ref() == Some(&key));
            let mut file = if kind == "Secret" {
                json!({ "secret": declared(self.pod, object, &key, self.part) })
            } else {
                let text = self.pod.context.objects.config(object, &key, "files").unwrap_or_default();
                json!({ "content": self.pod.context.text(&text, Use::Word) })
            };
            if let Some(mode) =
                own.and_then(|item| item.get("mode")).and_then(mode).or_else(|| default.clone())
            {
                file["mode"] = json!(mode);
            }
            self.pod.role.draft.set(&["roles", role, "files", &target], self.part, node(self.part, &file));
        }
    }
}

/// A name that Kubernetes accepts for a claim.
fn claim_name(name: &str) -> String {
    converted(name, 40, false).unwrap_or("data".to_owned())
}

/// Permission bits, in octal; 0644 is the default.
fn mode(value: &Node) -> Option<String> {
    let text = scalar(value)?;
    let bits = match text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        Some(octal) => u32::from_str_radix(octal.trim_start_matches('o'), 8).ok()?,
        None => text.parse().ok()?,
    };
    (bits != 0o644).then(|| format!("{bits:04o}"))
}
