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

const WRITTEN = ["file", "untitled"];

/** Which mode a document should be in that nobody has chosen one for; undefined where it is in that mode. */
function wanted(document: vscode.TextDocument): string | undefined {
    const recognises = vscode.workspace.getConfiguration("jobc", document).get("recogniseFiles", true);
    if (!WRITTEN.includes(document.uri.scheme)) {
        return undefined;
    }
    if (isOurs(document)) {
        // VS Code has gone by the name, which the text or the setting may say not to.
        const byName = recognise(document.uri.path, "") !== undefined;
        const wrong = byName && (!recognises || isForeign(document.getText()));
        return wrong ? (document.languageId === YAML ? "yaml" : "json") : undefined;
    }
    const mode = { yaml: YAML, json: JSON, jsonc: JSON }[document.languageId];
    return mode !== undefined && recognises && recognise(document.uri.path, document.getText()) !== undefined ? mode : undefined;
}

/** Watches documents for as long as the extension lives. */
export function adoptDocuments(): vscode.Disposable {
    // A change of mode is a close and an open in one turn of the event loop; what lies in here was closed in this turn.
    const closed = new Map<string, string>();
    // Documents whose mode was changed by hand, or by us for being somebody else's.
    const declined = new Set<string>();
    // Documents that another YAML extension has seen before us and may still report about.
    const taken = new Set<string>();

    const adopt = async (document: vscode.TextDocument): Promise<void> => {
        const uri = document.uri.toString();
        const mode = wanted(document);
        if (mode === undefined || declined.has(uri)) {
            return;
        }
        if (mode === YAML) {
            taken.add(uri);
        }
        await vscode.languages.setTextDocumentLanguage(document, mode);
    };

    /** Lets the other extension open and close a document once more, at which it takes back what it has reported too late. */
    const clear = async (document: vscode.TextDocument): Promise<void> => {
        const uri = document.uri.toString();
        const late = vscode.languages.getDiagnostics(document.uri).some(({ source }) => /^yaml/i.test(source ?? ""));
        if (late && document.languageId === YAML && taken.delete(uri)) {
            const yaml = await vscode.languages.setTextDocumentLanguage(document, "yaml");
            declined.delete(uri);
            await vscode.languages.setTextDocumentLanguage(yaml, YAML);
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
        if (before === undefined) {
            void adopt(document);
        }
    };

    vscode.workspace.textDocuments.forEach((document) => void adopt(document));
    return vscode.Disposable.from(
        vscode.workspace.onDidOpenTextDocument(opened),
        vscode.workspace.onDidSaveTextDocument((document) => void adopt(document)),
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
        vscode.languages.onDidChangeDiagnostics(({ uris }) => {
            for (const document of vscode.workspace.textDocuments) {
                if (taken.has(document.uri.toString()) && uris.some((uri) => uri.toString() === document.uri.toString())) {
                    void clear(document);
                }
            }
        }),
    );
}
