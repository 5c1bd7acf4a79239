//! A Dockerfile in the making: instructions, with the place of the job file that each comes from.

use jobc_schema::Pointer;
use jobc_schema::reference::Parts;

use crate::backend::{Context, FilePart, Origin, PartSource};
use crate::diagnostic::Sink;
use crate::emit::dockerfile::{Command, Dockerfile, Kind, Mount};

use super::base::Base;

/// A Dockerfile in the making.
pub(super) struct Build<'a> {
    pub(super) file: Dockerfile,
    pub(super) origins: Vec<Origin>,
    pub(super) copied: Vec<String>,
    pub(super) from: &'a str,
    pub(super) base: Base,
    /// The place of the image block.
    pub(super) at: &'a Pointer,
    /// The user that commands run as at this point; `None` means root.
    pub(super) user: Option<String>,
    /// Whether an earlier apt step has disabled the cache cleanup of the image.
    pub(super) apt_seen: bool,
    pub(super) context: &'a Context<'a>,
    pub(super) sink: &'a mut Sink,
}

impl Build<'_> {
    /// Adds an instruction that a place of the job file asks for.
    pub(super) fn push(&mut self, kind: Kind, at: &Pointer) {
        self.push_with(kind, &[], at);
    }

    /// As above, below comment lines.
    pub(super) fn push_with(&mut self, kind: Kind, comments: &[&str], at: &Pointer) {
        let mut comments: Vec<String> = comments.iter().map(|&comment| comment.to_owned()).collect();
        if self.repeats_run(&kind) {
            // One layer per step, so that a changed step does not rerun earlier ones.
            match comments.iter_mut().find(|comment| comment.starts_with("hadolint ignore=")) {
                Some(pragma) => pragma.push_str(",DL3059"),
                None => comments.push("hadolint ignore=DL3059".to_owned()),
            }
        }
        let number = self.file.push_with(kind, comments);
        self.note(number, PartSource::Spec(at.clone()));
    }

    /// Whether hadolint would suggest joining a short `RUN` with the previous one.
    fn repeats_run(&self, kind: &Kind) -> bool {
        let last = self.file.instructions.last().map(|instruction| &instruction.kind);
        let (Kind::Run { mounts, command }, Some(Kind::Run { mounts: before, .. })) = (kind, last) else {
            return false;
        };
        let joined = |line: &&String| line.starts_with("&& ");
        let long = matches!(command, Command::Lines(lines) if lines.iter().filter(joined).count() > 1);
        mounts == before && !long
    }

    /// Adds an instruction that the job does not request, with its reason.
    pub(super) fn push_default(&mut self, kind: Kind, reason: &'static str) {
        let number = self.file.push(kind);
        self.note(number, PartSource::Default(reason));
    }

    fn note(&mut self, number: usize, from: PartSource) {
        let part = FilePart::Line(u32::try_from(number).unwrap_or(u32::MAX));
        self.origins.push(Origin { part, from });
    }

    pub(super) fn base_image(&mut self) {
        let at = self.at.key("from");
        let parts = Parts::of(self.from);
        let comments: &[&str] = match parts.tag {
            _ if parts.digest.is_some() || self.from == "scratch" => &[],
            None => &["The job names no tag.", "hadolint ignore=DL3006"],
            Some("latest") => &["The job asks for `latest`.", "hadolint ignore=DL3007"],
            Some(_) => &[],
        };
        // The platform goes to the build command: a Dockerfile that fixes it cannot be built for another.
        let image = self.from.to_owned();
        self.push_with(Kind::From { platform: None, image, alias: None }, comments, &at);
    }

    pub(super) fn run(&mut self, script: &str, secrets: &[String], at: &Pointer) {
        let mounts: Vec<Mount> = secrets.iter().map(|id| Mount::Secret { id: id.clone() }).collect();
        let command = Command::Script(script.to_owned());
        self.push(Kind::Run { mounts, command }, at);
    }

    pub(super) fn workdir(&mut self, path: Option<&str>, at: &Pointer) {
        if let Some(path) = path
            && self.one_line(path, at, "a path")
        {
            let path = if path.starts_with(['/', '$']) { path.to_owned() } else { format!("/{path}") };
            self.push(Kind::Workdir(path), at);
        }
    }

    /// `USER`, unless that user is already set; `None` means root.
    pub(super) fn become_user(&mut self, user: Option<String>, at: &Pointer) {
        if self.user == user {
            return;
        }
        let root = user.as_deref().is_none_or(|user| matches!(user.split(':').next(), Some("root" | "0")));
        let named = user.as_deref().is_some_and(|user| !user.starts_with(|c: char| c.is_ascii_digit()));
        let comments: &[&str] = match (root, named) {
            (true, true) => &["hadolint ignore=DL3002,DL3066"],
            (true, false) => &["hadolint ignore=DL3002"],
            (false, true) => &["hadolint ignore=DL3066"],
            (false, false) => &[],
        };
        self.push_with(Kind::User(user.clone().unwrap_or_else(|| "0".into())), comments, at);
        self.user = user;
    }
}
