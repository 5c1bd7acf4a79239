// Notes about targets that nobody has chosen: without a targets file a job is tried for each kind of place.

import * as vscode from "vscode";

/** What becomes of these notes: dots below the text, as the server sends them; what they are on the command line; nothing. */
export type TargetNotes = "quiet" | "show" | "hide";

/** Findings with such notes as the user wants them. */
export function asWanted(diagnostics: vscode.Diagnostic[], notes: TargetNotes): vscode.Diagnostic[] {
    if (notes === "hide") {
        return diagnostics.filter((diagnostic) => !isTargetNote(diagnostic));
    }
    for (const diagnostic of notes === "show" ? diagnostics.filter(isTargetNote) : []) {
        diagnostic.severity = vscode.DiagnosticSeverity.Information;
    }
    return diagnostics;
}

/** Whether a finding is one of the last pass that the server has made quiet. */
function isTargetNote({ severity, code }: vscode.Diagnostic): boolean {
    const text = String(typeof code === "object" ? code.value : code);
    return severity === vscode.DiagnosticSeverity.Hint && text.startsWith("J04");
}
