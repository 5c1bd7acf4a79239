//! The capabilities of the server.

use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeLensOptions, CompletionOptions, RenameOptions, SaveOptions,
    ServerCapabilities, TextDocumentSyncKind, TextDocumentSyncOptions,
};
use serde_json::{Value, json};

use crate::actions::FIX_ALL;
use crate::client::Client;
use crate::tokens::{MODIFIERS, TYPES};

/// The response to `initialize`.
pub(crate) fn initialize(client: &Client) -> Value {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::Incremental),
        save: Some(SaveOptions { include_text: Some(false) }.into()),
        ..TextDocumentSyncOptions::default()
    };
    let settings = &client.settings;
    let capabilities = ServerCapabilities {
        position_encoding: Some(client.encoding.kind()),
        text_document_sync: Some(sync.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", " ", ":", "[", "{", "\"", "/", "-"].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(true.into()),
        definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        rename_provider: Some(
            RenameOptions { prepare_provider: Some(true), ..RenameOptions::default() }.into(),
        ),
        document_symbol_provider: Some(true.into()),
        folding_range_provider: Some(true.into()),
        document_formatting_provider: Some(true.into()),
        inlay_hint_provider: settings.inlay_hints.then(|| true.into()),
        code_lens_provider: (settings.code_lens || settings.why_lens).then(CodeLensOptions::default),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![
                    CodeActionKind::QuickFix,
                    CodeActionKind::RefactorExtract,
                    CodeActionKind::from(FIX_ALL),
                ]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    };
    let mut capabilities = serde_json::to_value(capabilities).expect("capabilities are plain JSON");
    let legend = json!({"tokenTypes": TYPES, "tokenModifiers": MODIFIERS});
    capabilities["semanticTokensProvider"] = json!({"legend": legend, "full": true, "range": true});
    capabilities["documentHighlightProvider"] = true.into();
    capabilities["documentLinkProvider"] = json!({});
    capabilities["selectionRangeProvider"] = true.into();
    capabilities["workspaceSymbolProvider"] = true.into();
    let files = json!([{"scheme": "file", "pattern": {"glob": "**"}}]);
    capabilities["workspace"] = json!({"fileOperations": {"willRename": {"filters": files}}});
    if client.pulls {
        capabilities["diagnosticProvider"] =
            json!({"identifier": "jobc", "interFileDependencies": true, "workspaceDiagnostics": false});
    }
    json!({
        "capabilities": capabilities,
        "serverInfo": {"name": "jobc", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The request to the client to watch files that a job may read.
pub(crate) fn watching() -> Value {
    let globs = ["**/*.{yaml,yml,json,txt,toml,cfg,conf}", "**/*Dockerfile*"];
    json!({"registrations": [{
        "id": "jobc-files",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": {"watchers": globs.map(|glob| json!({"globPattern": glob}))},
    }]})
}
