// Files that are not on the disk yet.

import * as vscode from "vscode";

import { YAML } from "./language";

/** Shows a text of ours under a name in a directory, to be saved there; without a file where the name is taken. */
export async function showDraft(directory: vscode.Uri | undefined, name: string, text: string): Promise<void> {
    const uri = directory && vscode.Uri.joinPath(directory, name);
    const isTaken = uri === undefined || (await vscode.workspace.fs.stat(uri).then(() => true, () => false));
    const document = isTaken
        ? await vscode.workspace.openTextDocument({ language: YAML, content: text })
        : await vscode.workspace.openTextDocument(uri.with({ scheme: "untitled" }));
    if (!isTaken && text !== "") {
        const edit = new vscode.WorkspaceEdit();
        edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), text);
        await vscode.workspace.applyEdit(edit);
    }
    await vscode.window.showTextDocument(document, { preview: false });
}
