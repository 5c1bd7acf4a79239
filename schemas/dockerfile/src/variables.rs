//! The values of variables at a line of a stage.
//!
//! A variable is one of `ENV`, including the base image's, else an `ARG` of the stage: `ENV` wins if both
//! are set, as in the reference, even if the `ARG` comes later. An `ARG`'s value is the one given for the build, else
//! its default, else that of the `ARG` with the same name before the first `FROM`.

use indexmap::IndexMap;
use jobc_schema::permissions::Permissions;

use super::arguments::Arguments;
use super::build::{Build, Inspection};
use super::expand;
use super::forms::{Arg, Heredoc, Mount, Word};
use super::refusal::{Refusal, Span};

/// Arguments that a builder accepts without an `ARG`; they are not stored in the image or used as cache keys.
pub const PROXIES: &[&str] = &[
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "FTP_PROXY",
    "ftp_proxy",
    "NO_PROXY",
    "no_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// The predefined arguments, whose values depend on the platforms of the builder and the image.
pub(super) const PLATFORM: &[&str] = &[
    "TARGETPLATFORM",
    "TARGETOS",
    "TARGETARCH",
    "TARGETVARIANT",
    "BUILDPLATFORM",
    "BUILDOS",
    "BUILDARCH",
    "BUILDVARIANT",
];

/// The variables of a stage while it is built, line after line.
#[derive(Clone, Debug)]
pub struct Variables<'a> {
    arguments: &'a Arguments,
    escape: char,
    env: IndexMap<String, String>,
    args: IndexMap<String, String>,
    /// Whether variables without a value are left unchanged.
    keeps: bool,
}

impl<'a> Variables<'a> {
    /// The variables of a stage that is based on an image or another stage with this `ENV`.
    pub fn new(build: &'a Build, env: IndexMap<String, String>) -> Self {
        Self { arguments: &build.arguments, escape: build.escape, env, args: IndexMap::new(), keeps: false }
    }

    /// The variables of a stage whose base is unknown: variables without a value are left unchanged, since the base may
    /// set them.
    pub fn without_base(file: &'a Inspection, env: IndexMap<String, String>) -> Self {
        Self { arguments: &file.arguments, escape: file.escape, env, args: IndexMap::new(), keeps: true }
    }

    /// `ENV` so far, including the base image's: what is stored in the image's configuration.
    pub fn env(&self) -> &IndexMap<String, String> {
        &self.env
    }

    /// The `ARG`s of the stage so far that have a value, which a cached `RUN` depends on besides `ENV`.
    pub fn args(&self) -> &IndexMap<String, String> {
        &self.args
    }

    /// The environment of a `RUN` command: proxies that were given, then `ARG`s, then `ENV`; later ones win.
    pub fn of_command(&self) -> IndexMap<String, String> {
        let given = |name: &&str| Some(((*name).to_owned(), self.arguments.given.get(*name)?.clone()));
        let mut all: IndexMap<String, String> = PROXIES.iter().filter_map(given).collect();
        let own = self.args.iter().chain(&self.env);
        all.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// Executes `ARG`.
    pub fn declare(&mut self, args: &[Arg]) -> Result<(), Refusal> {
        for arg in args {
            let name = self.expand(&arg.name)?;
            let value = match (self.arguments.given.get(&name), &arg.default) {
                (Some(given), _) => Some(given.clone()),
                (None, Some(default)) => Some(self.expand(default)?),
                (None, None) => self.arguments.known(&name).cloned(),
            };
            if let Some(value) = value {
                self.args.insert(name, value);
            }
        }
        Ok(())
    }

    /// Executes `ENV`: every value is expanded with the variables set before the line. Returns what was set.
    pub fn set(&mut self, pairs: &[(Word, Word)]) -> Result<Vec<(String, String)>, Refusal> {
        let pairs = self.pairs(pairs)?;
        self.env.extend(pairs.iter().cloned());
        Ok(pairs)
    }

    /// Names and values of `LABEL` or `ENV`, expanded.
    pub fn pairs(&self, pairs: &[(Word, Word)]) -> Result<Vec<(String, String)>, Refusal> {
        pairs.iter().map(|(name, value)| Ok((self.expand(name)?, self.expand(value)?))).collect()
    }

    /// Removes quotes and expands variables in a word.
    pub fn expand(&self, word: &Word) -> Result<String, Refusal> {
        let expand = if self.keeps { expand::expand_known } else { expand::expand };
        expand(&word.text, self.escape, &|name| self.value(name)).map_err(|why| refused(word, why))
    }

    /// Expands a word that may become several: `EXPOSE $PORTS`.
    pub fn expand_words(&self, word: &Word) -> Result<Vec<String>, Refusal> {
        expand::words(&word.text, self.escape, &|name| self.value(name)).map_err(|why| refused(word, why))
    }

    /// Expands the content of a heredoc of `COPY`.
    pub fn expand_heredoc(&self, heredoc: &Heredoc) -> Result<String, Refusal> {
        if !heredoc.expand {
            return Ok(heredoc.content.clone());
        }
        expand::heredoc(&heredoc.content, &|name| self.value(name))
            .map_err(|why| Refusal::new(heredoc.span.clone(), why))
    }

    /// A mount, with the values filled in that are not text.
    pub fn mount(&self, mount: &Mount) -> Result<Mount, Refusal> {
        let mut filled = mount.clone();
        for (field, word) in std::mem::take(&mut filled.deferred) {
            filled.fill(field, &Word { text: self.expand(&word)?, ..word })?;
        }
        Ok(filled)
    }

    /// The permissions of `--chmod`.
    pub fn mode(&self, word: &Word) -> Result<Permissions, Refusal> {
        let text = self.expand(word)?;
        text.parse().map_err(|_| invalid_mode(&text, word.span.clone()))
    }

    fn value(&self, name: &str) -> Option<String> {
        self.env.get(name).or_else(|| self.args.get(name)).cloned()
    }
}

fn refused(word: &Word, why: String) -> Refusal {
    let refusal = Refusal::new(word.span.clone(), why);
    if refusal.message.contains("quote") {
        return refusal.help("for a path with spaces, write the JSON form: `[\"a b\", \"/to\"]`");
    }
    refusal
}

/// The error for an invalid mode in `--chmod`.
pub(super) fn invalid_mode(text: &str, span: Span) -> Refusal {
    Refusal::new(span, format!("invalid mode `--chmod={text}`"))
        .help("write octal digits or letters of chmod(1), such as `755` or `u=rwX,go=rX`")
}
