// Puts job and targets files into the language mode `jobc`, where no other YAML extension looks at them: so nothing
// is shown twice, whichever of those are installed. The user's own choice of a mode is left alone.

import * as vscode from "vscode";

import { isForeign, recognise } from "./recognise";

/** The mode of files in YAML. */
export const YAML = "jobc";
/** The mode of files in JSON, comments allowed. */
export const JSON = "jobc-json";

/** Whether a document is in one of our modes. */
export function isOurs(document: vscode.TextDocument): boolean {
    return document.languageId === YAML || document.languageId === JSON;
}

/** How often a document is given back to another extension, so that it takes back its findings. */
const MAX_ATTEMPTS = 5;

/** Which mode a document should be in that nobody has chosen one for; undefined where it is in that mode. */
function wanted(document: vscode.TextDocument, schemes: string[]): string | undefined {
    const recognises = vscode.workspace.getConfiguration("jobc", document).get("recogniseFiles", true);
    if (!isWritten(document.uri.scheme, schemes)) {
        return undefined;
    }
    if (isOurs(document)) {
        // VS Code has gone by the name, which the text or the setting may say not to.
        const wrong = isNamed(document) && (!recognises || isOthers(document));
        return wrong ? (document.languageId === YAML ? "yaml" : "json") : undefined;
    }
    const mode = { yaml: YAML, json: JSON, jsonc: JSON }[document.languageId];
    return mode !== undefined && recognises && recognise(pathOf(document), document.getText()) !== undefined ? mode : undefined;
}

/** The path of a document; a text without a file goes by its mode instead of the end of a name. */
function pathOf({ uri, languageId }: vscode.TextDocument): string {
    return uri.scheme === "untitled" ? `${uri.path}.${languageId}` : uri.path;
}

/** Whether a document's name is enough to make it ours. */
function isNamed(document: vscode.TextDocument): boolean {
    return recognise(document.uri.path, "") !== undefined;
}

/** Whether a document turned out to be another program's. */
function isOthers(document: vscode.TextDocument): boolean {
    const text = document.getText();
    return isNamed(document) ? recognise(document.uri.path, text) === undefined : isForeign(text);
}

/** Whether documents of a scheme are texts that are written, and not views. Without schemes those of every file system. */
function isWritten(scheme: string, schemes: string[]): boolean {
    return schemes.length > 0 ? schemes.includes(scheme) : scheme === "untitled" || vscode.workspace.fs.isWritableFileSystem(scheme) !== undefined;
}

/** Watches documents of these schemes for as long as the extension lives. */
export function adoptDocuments(schemes: string[]): vscode.Disposable {
    // A change of mode is a close and an open in one turn of the event loop; what lies in here was closed in this turn.
    const closed = new Map<string, string>();
    // Documents whose mode was changed by hand, or by us for being somebody else's.
    const declined = new Set<string>();
    // Documents that were put into one of our modes by hand: they stay there, whatever their name and text.
    const chosen = new Set<string>();
    // Documents whose mode we are about to change.
    const changing = new Set<string>();
    // Documents that another YAML extension has seen before us and may still report about, with how often we ask it not to.
    const taken = new Map<string, number>();

    const change = async (document: vscode.TextDocument, mode: string): Promise<vscode.TextDocument> => {
        const uri = document.uri.toString();
        changing.add(uri);
        return await Promise.resolve(vscode.languages.setTextDocumentLanguage(document, mode)).finally(() => changing.delete(uri));
    };

    const adopt = async (document: vscode.TextDocument): Promise<void> => {
        const uri = document.uri.toString();
        const mode = wanted(document, schemes);
        if (mode === undefined || declined.has(uri) || chosen.has(uri)) {
            return;
        }
        if (mode === YAML) {
            taken.set(uri, MAX_ATTEMPTS);
        }
        await change(document, mode);
    };

    /** Lets the other extension open and close a document once more, at which it takes back what it has reported too late. */
    const clear = async (document: vscode.TextDocument): Promise<void> => {
        const uri = document.uri.toString();
        const late = vscode.languages.getDiagnostics(document.uri).some(({ source }) => /^yaml/i.test(source ?? ""));
        const left = taken.get(uri) ?? 0;
        if (late && document.languageId === YAML && left > 0 && !changing.has(uri)) {
            // On a slow machine it may begin anew while the document is its own again, so once may not be enough.
            taken.set(uri, left - 1);
            const yaml = await change(document, "yaml");
            declined.delete(uri);
            await change(yaml, YAML);
        }
    };

    const opened = (document: vscode.TextDocument): void => {
        const uri = document.uri.toString();
        const before = closed.get(uri);
        if (before !== undefined && isOurs(document) && !changing.has(uri)) {
            chosen.add(uri);
        } else if (!isOurs(document)) {
            chosen.delete(uri);
        }
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
            const byHand = chosen.has(document.uri.toString());
            if (isOurs(document) && !byHand && document.lineCount < 100 && isOthers(document)) {
                void change(document, document.languageId === YAML ? "yaml" : "json");
            }
            // A text without a file is never opened with what is in it.
            if (document.isUntitled && !isOurs(document) && document.lineCount < 100) {
                void adopt(document);
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
