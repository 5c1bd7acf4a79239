//! The capabilities and options of the client.

use jobc_schema::site::Site;
use lsp_types::InitializeParams;
use serde::Deserialize;

use crate::text::Encoding;

/// A client.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what a client can do is a list of yes and no")]
pub(crate) struct Client {
    pub(crate) encoding: Encoding,
    pub(crate) settings: Settings,
    /// Where the pages of codes are published.
    pub(crate) site: Option<Site>,
    /// Whether it shows related locations of a finding.
    pub(crate) related_information: bool,
    /// Whether it opens the URL of a code.
    pub(crate) code_description: bool,
    /// Whether inserted text may have tab stops.
    pub(crate) snippets: bool,
    /// Whether inserted lines can be indented like their first line.
    pub(crate) adjusts_indentation: bool,
    /// Whether symbols may have children.
    pub(crate) nested_symbols: bool,
    /// Whether it compares the version of a text with that of an edit.
    pub(crate) versioned_edits: bool,
    /// Whether it pulls diagnostics, and pulls them again on request: then they are not published.
    pub(crate) pulls: bool,
    /// Whether it can watch files.
    pub(crate) watches_files: bool,
}

/// `initializationOptions`; unknown options are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "a setting is yes or no by its name in the protocol")]
pub(crate) struct Settings {
    /// Whether to offer completion and hover for the contents of the schema.
    pub(crate) schema_features: bool,
    /// Whether to show totals after a role's name.
    pub(crate) inlay_hints: bool,
    /// Whether to show Build, Run and Show plan above a job, if the client knows the commands.
    pub(crate) code_lens: bool,
    /// Whether to show how many lines of built files a role or field causes, if the client knows `jobc.why`.
    pub(crate) why_lens: bool,
    /// The target that jobs are shown for: a name, or `*` for all; if empty, those that the command line uses.
    pub(crate) target: String,
    /// Whether the job is started without environment variables, as in a web page; otherwise they are unknown.
    pub(crate) empty_environment: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schema_features: true,
            inlay_hints: true,
            code_lens: false,
            why_lens: false,
            target: String::new(),
            empty_environment: false,
        }
    }
}

impl Client {
    pub(crate) fn new(params: &InitializeParams) -> Self {
        let capabilities = &params.capabilities;
        let text = capabilities.text_document.as_ref();
        let general = capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
        let publish = text.and_then(|text| text.publish_diagnostics.as_ref());
        let diagnostics = publish.map(|publish| &publish.diagnostics_capabilities);
        let item = text.and_then(|text| text.completion.as_ref()?.completion_item.as_ref());
        let modes = item.and_then(|item| item.insert_text_mode_support.as_ref());
        let options = params.initialization_options.clone().filter(|options| !options.is_null());
        let settings = options.map(serde_json::from_value).transpose().unwrap_or_else(|error| {
            eprintln!("jobc lsp: `initializationOptions` cannot be read, the defaults are used: {error}");
            None
        });
        let edits = capabilities.workspace.as_ref().and_then(|it| it.workspace_edit.as_ref());
        let refreshes =
            capabilities.workspace.as_ref().and_then(|it| it.diagnostics.as_ref()?.refresh_support);
        let refreshes = refreshes.unwrap_or(false);
        let watching = capabilities.workspace.as_ref().and_then(|it| it.did_change_watched_files.as_ref());
        Self {
            encoding: Encoding::choose(offered),
            settings: settings.unwrap_or_default(),
            site: Site::of_build(),
            related_information: diagnostics.and_then(|it| it.related_information).unwrap_or(false),
            code_description: diagnostics.and_then(|it| it.code_description_support).unwrap_or(false),
            snippets: item.and_then(|item| item.snippet_support).unwrap_or(false),
            adjusts_indentation: modes
                .is_some_and(|modes| modes.value_set.contains(&lsp_types::InsertTextMode::AdjustIndentation)),
            nested_symbols: text
                .and_then(|text| text.document_symbol.as_ref()?.hierarchical_document_symbol_support)
                .unwrap_or(false),
            versioned_edits: edits.and_then(|it| it.document_changes).unwrap_or(false),
            pulls: text.is_some_and(|text| text.diagnostic.is_some()) && refreshes,
            watches_files: watching.and_then(|it| it.dynamic_registration).unwrap_or(false),
        }
    }
}
