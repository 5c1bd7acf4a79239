//! The settings: their names, their values, and where they may be set.

use jobc_compiler::suggest;

use super::error::SettingsError;

/// A setting, with the name of the option that it replaces.
#[derive(Debug)]
pub(crate) struct Setting {
    pub name: &'static str,
    /// The variable of the environment that takes precedence over files.
    pub variable: &'static str,
    pub default: &'static str,
    pub form: Form,
    /// Whether a project's file may have it: not settings of the user's host, files or trust, because the file in a
    /// checkout was written by someone else.
    pub is_of_project: bool,
}

/// The values of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A path.
    Path,
    /// A name.
    Name,
}

pub(crate) static ALLOW_UNENFORCED: Setting = Setting {
    name: "allow-unenforced",
    variable: "JOBC_ALLOW_UNENFORCED",
    default: "false",
    form: Form::Switch,
    is_of_project: false,
};
pub(crate) static COLOR: Setting = Setting {
    name: "color",
    variable: "JOBC_COLOR",
    default: "auto",
    form: Form::Word(&["auto", "always", "never"]),
    is_of_project: false,
};
pub(crate) static IMAGE_ROOT: Setting = Setting {
    name: "image-root",
    variable: "JOBC_IMAGE_ROOT",
    default: "~/.local/share/jobc/images",
    form: Form::Path,
    is_of_project: false,
};
pub(crate) static REGISTRIES: Setting = Setting {
    name: "registries",
    variable: "JOBC_REGISTRIES",
    default: "~/.config/jobc/registries.yaml",
    form: Form::Path,
    is_of_project: false,
};
pub(crate) static TARGET: Setting =
    Setting { name: "target", variable: "JOBC_TARGET", default: "", form: Form::Name, is_of_project: true };

/// All settings, by name.
pub(crate) static SETTINGS: [&Setting; 5] = [&ALLOW_UNENFORCED, &COLOR, &IMAGE_ROOT, &REGISTRIES, &TARGET];

impl Setting {
    /// The setting of a name.
    pub(crate) fn of(name: &str) -> Result<&'static Self, SettingsError> {
        SETTINGS.iter().copied().find(|setting| setting.name == name).ok_or_else(|| {
            let names = SETTINGS.iter().map(|setting| setting.name);
            let message = format!("unknown setting `{name}`");
            let similar = name.replace('_', "-");
            let same = names.clone().find(|known| *known == similar);
            let help = match same.or_else(|| suggest::nearest(&similar, names.clone())) {
                Some(near) => format!("write `{near}`"),
                None => format!("the settings are {}", suggest::list(names)),
            };
            SettingsError::new(message, help)
        })
    }

    /// The value of a word on the command line or in a file.
    pub(crate) fn parse(&self, text: &str) -> Result<String, SettingsError> {
        let is_fit = match self.form {
            Form::Switch => matches!(text, "true" | "false"),
            Form::Word(words) => words.contains(&text),
            Form::Path => text.starts_with("~/") || std::path::Path::new(text).is_absolute(),
            Form::Name => !text.is_empty(),
        };
        match (is_fit, text) {
            (true, _) => Ok(text.to_owned()),
            (false, "") => Err(self.misfit("empty")),
            (false, _) => Err(self.misfit(&format!("`{text}`"))),
        }
    }

    /// The value of a variable: switches are also 1 and 0, and paths may be relative.
    pub(crate) fn parse_variable(&self, text: &str) -> Result<String, SettingsError> {
        match (self.form, text) {
            (Form::Switch, "1") => Ok("true".to_owned()),
            (Form::Switch, "0") => Ok("false".to_owned()),
            (Form::Path, _) => Ok(text.to_owned()),
            _ => self.parse(text),
        }
    }

    /// The error for something else than the setting may be.
    pub(super) fn misfit(&self, what: &str) -> SettingsError {
        let help = match self.form {
            Form::Switch => "write `true` or `false`".to_owned(),
            Form::Word(words) => format!("write {}", alternatives(words)),
            Form::Path if what == "a table" => {
                "write the path of a file; registries are described in registries.yaml".to_owned()
            }
            Form::Path => "write an absolute path, or one that begins with `~/`".to_owned(),
            Form::Name => "write the name of a target, such as \"local\"".to_owned(),
        };
        SettingsError::new(format!("`{}` cannot be {what}", self.name), help)
    }
}

/// Words in quotation marks, as alternatives.
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
