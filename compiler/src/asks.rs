//! What a role asks for of the variables (`JOBC_*`) and files that jobc can provide: it gets what it names, and what it
//! has no other way to learn.
//!
//! A role asks by naming them in a text: its command, `setup`, `env`, `files`, check, or the block of its image; or in a
//! program beside the job file that goes with it. The job asks for all of them with `compat: [jobc]`, for programs in an
//! image, which jobc cannot read.

use std::collections::{BTreeMap, BTreeSet};

use jobc_schema::Pointer;
use jobc_schema::job::Compat;
use jobc_schema::plan::{
    CommandPlan, EnvPlan, FileContent, ImageSource, JobPlan, Piece, ProbePlan, RolePlan, Text,
};

/// What the names of jobc's variables begin with, without the `_`.
const PREFIX: &str = "JOBC";
/// The directory of jobc's files.
const DIRECTORY: &str = "/etc/jobc";

/// The names in the texts of a role.
#[derive(Debug)]
pub struct Asks {
    /// Words that begin with [`PREFIX`], with the place of the first.
    words: BTreeMap<String, Pointer>,
    /// Paths that begin with [`DIRECTORY`], likewise.
    paths: BTreeMap<String, Pointer>,
    /// `compat: [jobc]`.
    all: Option<Pointer>,
}

impl Asks {
    /// Reads the texts of a role.
    pub fn of(plan: &JobPlan, role: &RolePlan) -> Self {
        let compat = plan.compat.iter().position(|compat| *compat == Compat::Jobc);
        let all = compat.map(|number| Pointer::ROOT.key("compat").index(number));
        let mut asks = Self { words: BTreeMap::new(), paths: BTreeMap::new(), all };
        for (at, text) in texts(role) {
            for piece in text.pieces() {
                if let Piece::Literal(literal) = piece {
                    asks.read(literal, &at);
                }
            }
        }
        if let Some(image) = plan.image_of(role)
            && let ImageSource::Build { steps, entrypoint, .. } = &image.source
        {
            let strings = |value: serde_json::Result<serde_json::Value>| value.unwrap_or_default();
            asks.read_json(&strings(serde_json::to_value(steps)), &image.declared_at);
            asks.read_json(&strings(serde_json::to_value(entrypoint)), &image.declared_at);
        }
        asks
    }

    /// Why a role gets a variable: the text that names it, or `compat`. A text can name the beginning of a variable, as in
    /// `${!JOBC_HOSTS_@}` or `"JOBC_PORT_" + label`.
    pub fn variable(&self, name: &str) -> Option<&Pointer> {
        let names = |word: &str| {
            name.strip_prefix(word)
                .is_some_and(|rest| rest.is_empty() || word.ends_with('_') || rest.starts_with('_'))
        };
        self.words.iter().find(|(word, _)| names(word)).map(|(_, at)| at).or(self.all.as_ref())
    }

    /// Why a role gets a file: the text that names it or its directory, or `compat`.
    pub fn file(&self, path: &str) -> Option<&Pointer> {
        let names = |named: &String| named == path || named == DIRECTORY;
        self.paths.iter().find(|(named, _)| names(named)).map(|(_, at)| at).or(self.all.as_ref())
    }

    /// Adds what programs of the role name, as [`mentions`] finds it.
    pub fn add(&mut self, mentions: BTreeSet<String>, at: &Pointer) {
        for mention in mentions {
            let of_kind = if mention.starts_with('/') { &mut self.paths } else { &mut self.words };
            of_kind.entry(mention).or_insert_with(|| at.clone());
        }
    }

    fn read(&mut self, text: &str, at: &Pointer) {
        self.add(mentions(text), at);
    }

    fn read_json(&mut self, value: &serde_json::Value, at: &Pointer) {
        match value {
            serde_json::Value::String(text) => self.read(text, at),
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.read_json(item, at)),
            serde_json::Value::Object(fields) => fields.values().for_each(|value| self.read_json(value, at)),
            _ => {}
        }
    }
}

/// The words and paths of a text that name variables and files of jobc, or begin their names.
pub fn mentions(text: &str) -> BTreeSet<String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let until = |at: usize, is_part: &dyn Fn(char) -> bool| {
        let rest = &text[at..];
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    };
    let words = text.match_indices(PREFIX).map(|(at, _)| until(at, &is_letter));
    let paths = text.match_indices(DIRECTORY).map(|(at, _)| until(at, &is_path).trim_end_matches(['.', '/']));
    words.chain(paths).map(str::to_owned).collect()
}

/// The texts of a role that the user wrote, with their places.
pub fn texts(role: &RolePlan) -> Vec<(Pointer, &Text)> {
    let at = role.at();
    let own = |key: &str| at.key(key);
    let mut texts: Vec<(Pointer, &Text)> = match &role.command {
        CommandPlan::Image {} => vec![],
        CommandPlan::Args(args) => args.iter().map(|text| (own("args"), text)).collect(),
        CommandPlan::Argv { argv, setup } => {
            let argv = argv.iter().map(|text| (own("run"), text));
            argv.chain(setup.iter().map(|text| (own("setup"), text))).collect()
        }
        CommandPlan::Script { setup, script, .. } => {
            setup.iter().map(|text| (own("setup"), text)).chain([(own("run"), script)]).collect()
        }
    };
    texts.extend(role.env.iter().filter_map(|(name, value)| match value {
        EnvPlan::Text(text) => Some((at.keys(["env", name]), text)),
        EnvPlan::Secret { .. } => None,
    }));
    texts.extend(role.files.iter().filter_map(|file| match &file.content {
        FileContent::Text(text) => Some((at.keys(["files", &file.path]), text)),
        FileContent::Secret { .. } => None,
    }));
    if let Some(ProbePlan::Exec(exec)) = role.ready.as_ref().map(|ready| &ready.probe) {
        texts.extend(exec.iter().map(|text| (own("ready"), text)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str) -> Asks {
        let mut asks = Asks { words: BTreeMap::new(), paths: BTreeMap::new(), all: None };
        asks.read(text, &Pointer::ROOT.key("run"));
        asks
    }

    #[test]
    fn a_text_names_a_variable_or_its_beginning() {
        let named = |text: &str, name: &str| asks(text).variable(name).is_some();
        assert!(named("echo $JOBC_RANK", "JOBC_RANK"));
        assert!(named("echo ${JOBC_HOSTS_PS_2%%,*}", "JOBC_HOSTS_PS_2"));
        assert!(named("os.environ[\"JOBC_INDEX\"]\nx", "JOBC_INDEX"));
        assert!(named("f\"JOBC_HOSTS_{role}\"", "JOBC_HOSTS_TRAIN"));
        assert!(named("env | grep ^JOBC", "JOBC_WORLD_SIZE"));
        assert!(named("\"JOBC_PORT\" + \"_\" + label", "JOBC_PORT_HTTP"));
        assert!(!named("echo $JOBC_HOSTS_PS", "JOBC_HOSTS_PS2"));
        assert!(!named("echo $JOBC_INDEX_FILE", "JOBC_INDEX"));
        assert!(!named("torchrun train.py", "JOBC_RANK"));
    }

    #[test]
    fn a_text_names_a_file_or_its_directory() {
        let named = |text: &str, path: &str| asks(text).file(path).is_some();
        assert!(named("cat /etc/jobc/job.json|jq .", "/etc/jobc/job.json"));
        assert!(named("open('/etc/jobc/hostfile')", "/etc/jobc/hostfile"));
        assert!(named("ls -l /etc/jobc/", "/etc/jobc/job.json"));
        assert!(named("It reads /etc/jobc/job.json.", "/etc/jobc/job.json"));
        assert!(named("cat /etc/jobc/*", "/etc/jobc/hostfile"));
        assert!(!named("cat /etc/jobc/hostfile.hydra", "/etc/jobc/hostfile"));
        assert!(!named("cat job.json", "/etc/jobc/job.json"));
    }
}
