// Puts job and targets files into the language mode `jobc`, where no other YAML extension looks at them: so nothing
// is shown twice, whichever of those are installed. The user's own choice of a mode is left alone.

import * as vscode from "vscode";

import { isForeign, recognise, type Kind } from "./recognise";

/** The mode of files in YAML. */
export const YAML = "jobc";
/** The mode of files in JSON, comments allowed. */
export const JSON = "jobc-json";

/** Whether a document is in one of our modes. */
export function isOurs(document: vscode.TextDocument): boolean {
    return document.languageId === YAML || document.languageId === JSON;
}

/** What a document in one of our modes is; a job where nothing says otherwise, since somebody chose the mode. */
export function kindOf(document: vscode.TextDocument): Kind {
    return recognise(document.uri.path, document.getText()) ?? "job";
}

/** Which of our modes a document in a mode of VS Code's should be in. */
function wanted(document: vscode.TextDocument): string | undefined {
    const mode = { yaml: YAML, json: JSON, jsonc: JSON }[document.languageId];
    const written = document.uri.scheme === "file" || document.uri.scheme === "untitled";
    if (mode === undefined || !written || !vscode.workspace.getConfiguration("jobc", document).get("recogniseFiles", true)) {
        return undefined;
    }
    return recognise(document.uri.path, document.getText()) === undefined ? undefined : mode;
}

/** Watches documents for as long as the extension lives. */
export function adoptDocuments(): vscode.Disposable {
    // A change of mode is a close and an open in one turn of the event loop; what lies in here was closed in this turn.
    const closed = new Map<string, string>();
    // Documents that were taken out of our mode by hand, or by us for being somebody else's.
    const declined = new Set<string>();

    const adopt = (document: vscode.TextDocument): void => {
        const mode = wanted(document);
        if (mode !== undefined && !declined.has(document.uri.toString())) {
            void vscode.languages.setTextDocumentLanguage(document, mode);
        }
    };

    const opened = (document: vscode.TextDocument): void => {
        const uri = document.uri.toString();
        const before = closed.get(uri);
        if (before === undefined || isOurs(document)) {
            declined.delete(uri);
        } else if (before === YAML || before === JSON) {
            declined.add(uri);
        }
        adopt(document);
    };

    vscode.workspace.textDocuments.forEach(adopt);
    return vscode.Disposable.from(
        vscode.workspace.onDidOpenTextDocument(opened),
        vscode.workspace.onDidSaveTextDocument(adopt),
        vscode.workspace.onDidCloseTextDocument((document) => {
            const uri = document.uri.toString();
            closed.set(uri, document.languageId);
            setTimeout(() => closed.delete(uri), 0);
        }),
        vscode.workspace.onDidChangeTextDocument(({ document }) => {
            // An empty job.yaml may become a Kubernetes Job: then it goes back, before much of it is written.
            if (isOurs(document) && document.lineCount < 100 && isForeign(document.getText())) {
                void vscode.languages.setTextDocumentLanguage(document, document.languageId === YAML ? "yaml" : "json");
            }
        }),
    );
}
