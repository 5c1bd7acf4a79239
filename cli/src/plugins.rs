//! Plug-ins that are installed: directories of templates, and programs on PATH.

pub(crate) mod program;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::backend::{Backend, Plugins};
use jobc_compiler::plugin::{self, PluginBackend, PluginError, Source, TemplateSet};
use jobc_schema::BackendName;
use jobc_schema::target::PluginName;

use crate::{confine, inputs, watch};

/// The manifest of templates.
const MANIFEST: &str = "backend.yaml";
/// The maximum size of a template in bytes.
const MAX_TEMPLATE_BYTES: u64 = 1 << 20;

/// The result of looking up a name.
type Found = Result<Option<&'static PluginBackend>, PluginError>;

/// The plug-ins of a job: looked for when a target names one.
pub(crate) struct InstalledPlugins {
    /// Directories that may hold `backends/NAME`, the nearest first.
    directories: Vec<Utf8PathBuf>,
    found: Mutex<BTreeMap<PluginName, Found>>,
}

impl InstalledPlugins {
    /// The plug-ins of a job; `targets` is the directory of its targets file, `job` its own.
    pub(crate) fn new(targets: Option<&Utf8Path>, job: &Utf8Path) -> Self {
        let mut directories = vec![targets.unwrap_or(job).to_owned()];
        if let Some(user) = user_directory() {
            confine::allow(&user.join("backends"));
            directories.push(user);
        }
        Self { directories, found: Mutex::default() }
    }

    /// Those of the current directory.
    pub(crate) fn here() -> Self {
        Self::new(None, Utf8Path::new("."))
    }

    /// The plug-in of that name, and where it is.
    ///
    /// # Errors
    ///
    /// The plug-in exists but cannot be used.
    pub(crate) fn open(&self, name: PluginName) -> Found {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // They are never freed; there are few of them.
        let load = || self.load(name).map(|plugin| plugin.map(|plugin| &*Box::leak(Box::new(plugin))));
        found.entry(name).or_insert_with(load).clone()
    }

    fn load(&self, name: PluginName) -> Result<Option<PluginBackend>, PluginError> {
        for directory in &self.directories {
            let directory = directory.join("backends").join(name.as_str());
            let manifest = directory.join(MANIFEST);
            watch::note(&manifest);
            if inputs::is_file(&manifest) {
                return templates(name, &directory).map(Some);
            }
        }
        // Its response may depend on inputs that are not recorded.
        inputs::note_unknown();
        let Some(program) = program::find(name) else { return Ok(None) };
        PluginBackend::of_program(name, program::ask(program)).map(Some)
    }
}

impl Plugins for InstalledPlugins {
    fn find(&self, name: PluginName) -> Result<Option<&dyn Backend>, PluginError> {
        Ok(self.open(name)?.map(|plugin| plugin as &dyn Backend))
    }
}

/// A plug-in that is installed, and was not started.
pub(crate) struct InstalledPlugin {
    pub name: BackendName,
    /// A program or templates, and where.
    pub place: String,
    pub is_program: bool,
}

/// The plug-ins that a targets file in a directory may name, by name. Templates come before programs, as for a job.
pub(crate) fn installed(directory: &Utf8Path) -> Vec<InstalledPlugin> {
    let mut found: BTreeMap<String, InstalledPlugin> = BTreeMap::new();
    let mut add = |name: &str, place: String, is_program: bool| {
        if let Ok(name @ BackendName::Plugin(_)) = name.parse() {
            found.entry(name.to_string()).or_insert(InstalledPlugin { name, place, is_program });
        }
    };
    for directory in [Some(directory.to_owned()), user_directory()].into_iter().flatten() {
        for entry in directory.join("backends").read_dir_utf8().into_iter().flatten().flatten() {
            if entry.path().join(MANIFEST).is_file() {
                let path = entry.path().strip_prefix(".").unwrap_or(entry.path());
                add(entry.file_name(), format!("templates in {path}"), false);
            }
        }
    }
    for (name, path) in program::all() {
        add(&name, format!("program {}", path.display()), true);
    }
    found.into_values().collect()
}

/// `$XDG_CONFIG_HOME/jobc`, which holds the plug-ins of a user.
fn user_directory() -> Option<Utf8PathBuf> {
    let set = std::env::var("XDG_CONFIG_HOME").ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let directory = set.or_else(|| Some(crate::platform::directories::home()?.join(".config")))?;
    Some(directory.join("jobc"))
}

/// Reads a manifest and the templates that it names.
fn templates(name: PluginName, directory: &Utf8Path) -> Result<PluginBackend, PluginError> {
    let path = directory.join(MANIFEST);
    let text = read(&path)?;
    let manifest = plugin::read_manifest(&text).map_err(|error| format!("`{path}` is not valid: {error}"))?;
    if manifest.templates.is_empty() {
        return Err(format!("`{path}` names no `templates`").into());
    }
    let mut set = TemplateSet::default();
    for entry in &manifest.templates {
        if entry.template.contains(['/', '\\']) || entry.template.starts_with('.') {
            return Err(
                format!("`{path}`: the template `{}` is not a file next to it", entry.template).into()
            );
        }
        set.0.insert(entry.template.clone(), read(&directory.join(&entry.template))?);
    }
    Ok(PluginBackend::new(name, manifest, Source::Templates(set))
        .map_err(|why| format!("`{path}`: {why}"))?)
}

fn read(path: &Utf8Path) -> Result<String, PluginError> {
    let is_large = path.metadata().is_ok_and(|metadata| metadata.len() > MAX_TEMPLATE_BYTES);
    if is_large {
        return Err(format!("`{path}` has more than {MAX_TEMPLATE_BYTES} bytes").into());
    }
    let text = confine::permit(path).and_then(|()| std::fs::read_to_string(path));
    watch::note(path);
    inputs::note_content(path, text.as_ref().ok().map(String::as_bytes));
    Ok(text.map_err(|error| format!("cannot read `{path}`: {error}"))?)
}
