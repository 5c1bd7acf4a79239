// A file of another tool as a job file, with what is not in it as findings at the lines of that file.

import * as vscode from "vscode";

import type { Compiler } from "./compiler";
import { showDraft } from "./draft";
import { IMPORT } from "./requests";

export class Import {
    private readonly findings = vscode.languages.createDiagnosticCollection("jobc import");

    constructor(private readonly compiler: Compiler) {}

    register(): vscode.Disposable {
        return vscode.Disposable.from(
            this.findings,
            vscode.workspace.onDidChangeTextDocument(({ document }) => this.findings.delete(document.uri)),
            vscode.workspace.onDidCloseTextDocument(({ uri }) => this.findings.delete(uri)),
        );
    }

    /** Opens what becomes of the file in the editor, to be saved beside it. */
    async open(): Promise<void> {
        const source = vscode.window.activeTextEditor?.document;
        if (source === undefined) {
            void vscode.window.showErrorMessage("jobc: open the file to import first");
            return;
        }
        const directory = source.isUntitled ? undefined : vscode.Uri.joinPath(source.uri, "..");
        const name = source.uri.path.split("/").at(-1) ?? "";
        try {
            const { text, targets, findings } = await this.compiler.askWithFiles(IMPORT, { uri: source.uri.toString(), text: source.getText() });
            this.findings.set(source.uri, await this.compiler.diagnostics(findings));
            if (targets !== null) {
                await showDraft(directory, "targets.yaml", targets);
            }
            if (text !== null) {
                await showDraft(directory, "job.yaml", text);
            }
            const number = findings.filter(({ severity = 1 }) => severity <= 2).length;
            void tell(text === null ? `\`${name}\` is not imported` : "", number, name);
        } catch (error) {
            void vscode.window.showErrorMessage(`jobc: \`${name}\` is not imported: ${error instanceof Error ? error.message : String(error)}`);
        }
    }
}

/** Says what stands in the way, or how many errors and warnings there are; they are in the panel, as notes are. */
async function tell(problem: string, findings: number, name: string): Promise<void> {
    if (problem === "" && findings === 0) {
        return;
    }
    const count = `${findings} ${findings === 1 ? "finding" : "findings"}`;
    const show = "Show Problems";
    const chosen =
        problem === ""
            ? await vscode.window.showWarningMessage(`jobc: ${count} in \`${name}\`: what the job file does not have as it was`, show)
            : await vscode.window.showErrorMessage(`jobc: ${problem}: ${count}`, show);
    if (chosen === show) {
        await vscode.commands.executeCommand("workbench.actions.view.problems");
    }
}
