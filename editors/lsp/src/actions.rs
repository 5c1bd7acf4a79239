//! Quick fixes: those of the compiler, one at a time, or all safe ones. Refactorings: those of `extract`.

use std::collections::HashMap;

use jobc_compiler::diagnostic::Safety;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, CodeActionTriggerKind, Diagnostic,
    OptionalVersionedTextDocumentIdentifier, Range, TextDocumentEdit, TextDocumentIdentifier, TextEdit, Uri,
    WorkspaceEdit,
};

use crate::diagnostics::Places;
use crate::extract::{self, EXTRACT};
use crate::session::Session;

/// The kind of the action that applies every safe fix.
pub(crate) const FIX_ALL: &str = "source.fixAll.jobc";

/// The fixes for a range of a text.
pub(crate) fn actions(session: &Session<'_>, params: &CodeActionParams) -> Vec<CodeAction> {
    let uri = &params.text_document.uri;
    let wanted = params.context.only.as_deref();
    let wants = |kind: &str| {
        let begins =
            |only: &CodeActionKind| kind == only.to_string() || kind.starts_with(&format!("{only}."));
        wanted.is_none_or(|only| only.iter().any(begins))
    };
    // Findings of a job may be in its targets file, and several jobs may have one there.
    let mut quick: Vec<CodeAction> = vec![];
    let mut safe: Vec<Vec<(Uri, TextEdit)>> = vec![];
    for (job, analysis) in session.analyses().filter(|(_, analysis)| !analysis.findings.is_empty()) {
        let places = Places::of(analysis, &job, &session.client);
        for finding in &analysis.findings {
            let (at, diagnostic) = places.diagnostic(finding, &job);
            if at != *uri {
                continue;
            }
            for fix in &finding.fixes {
                let Some(edits) = places.edits(&fix.edits) else { continue };
                let is_safe = fix.safety == Safety::Safe;
                if touches(diagnostic.range, params.range) && wants("quickfix") {
                    let edit = workspace_edit(session, edits.clone());
                    let action = quick_fix(&fix.message, is_safe, edit, diagnostic.clone());
                    if !quick.contains(&action) {
                        quick.push(action);
                    }
                }
                if is_safe && at == *uri && edits.iter().all(|(in_file, _)| in_file == uri) {
                    safe.push(edits);
                }
            }
        }
    }
    // Only offered on request, not wherever the cursor is.
    if wants(EXTRACT) && params.context.trigger_kind != Some(CodeActionTriggerKind::Automatic) {
        quick.extend(refactorings(session, uri, params.range));
    }
    if wanted.is_some() && wants(FIX_ALL) && !safe.is_empty() {
        quick.push(fix_all(session, safe));
    }
    quick
}

fn refactorings(session: &Session<'_>, uri: &Uri, range: Range) -> Vec<CodeAction> {
    let Some(open) = session.documents.get(uri) else { return vec![] };
    let found = extract::extractions(session, uri, open.text.bytes(range)).into_iter();
    let action = |(title, edits): (String, Vec<TextEdit>)| CodeAction {
        title,
        kind: Some(CodeActionKind::RefactorExtract),
        edit: Some(workspace_edit(session, edits.into_iter().map(|edit| (uri.clone(), edit)).collect())),
        ..CodeAction::default()
    };
    found.map(action).collect()
}

fn quick_fix(message: &str, is_safe: bool, edit: WorkspaceEdit, diagnostic: Diagnostic) -> CodeAction {
    CodeAction {
        title: message.to_owned(),
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic]),
        is_preferred: Some(is_safe),
        edit: Some(edit),
        ..CodeAction::default()
    }
}

/// Every safe fix that does not overlap an earlier one; the next run finds the rest.
fn fix_all(session: &Session<'_>, fixes: Vec<Vec<(Uri, TextEdit)>>) -> CodeAction {
    let mut taken: Vec<(Uri, TextEdit)> = vec![];
    for edits in fixes {
        let free =
            |(_, edit): &(Uri, TextEdit)| taken.iter().all(|(_, other)| !touches(edit.range, other.range));
        if edits.iter().all(free) {
            taken.extend(edits);
        }
    }
    CodeAction {
        title: "apply every safe fix of jobc".to_owned(),
        kind: Some(CodeActionKind::from(FIX_ALL)),
        edit: Some(workspace_edit(session, taken)),
        ..CodeAction::default()
    }
}

/// Edits by URI; for an open text with its version, if the client compares it.
pub(crate) fn workspace_edit(session: &Session<'_>, edits: Vec<(Uri, TextEdit)>) -> WorkspaceEdit {
    // The protocol's type requires a hash map; it is only read by key.
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    let mut order: Vec<Uri> = vec![];
    for (uri, edit) in edits {
        let of_file = changes.entry(uri.clone()).or_default();
        if of_file.is_empty() {
            order.push(uri);
        }
        of_file.push(edit);
    }
    if !session.client.versioned_edits {
        return WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    }
    let versioned = |uri: Uri| {
        let edits = changes.remove(&uri).unwrap_or_default().into_iter().map(Into::into).collect();
        let version = session.documents.get(&uri).map(|open| open.version);
        let text_document = OptionalVersionedTextDocumentIdentifier {
            version,
            text_document_identifier: TextDocumentIdentifier { uri },
        };
        TextDocumentEdit { text_document, edits }.into()
    };
    let all = order.into_iter().map(versioned).collect();
    WorkspaceEdit { document_changes: Some(all), ..WorkspaceEdit::default() }
}

fn touches(a: Range, b: Range) -> bool {
    a.start <= b.end && b.start <= a.end
}
