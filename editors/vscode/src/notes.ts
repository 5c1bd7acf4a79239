// Notes about targets that nobody has chosen: without a targets file a job is tried for each kind of place.

import * as vscode from "vscode";

/** What becomes of these notes: dots below the text; what they are on the command line; nothing. */
export type TargetNotes = "quiet" | "show" | "hide";

/** Findings with such notes made quieter. Errors, warnings and notes of other passes stay what they are. */
export function quieter(diagnostics: vscode.Diagnostic[], notes: TargetNotes | string): vscode.Diagnostic[] {
    if (notes === "show") {
        return diagnostics;
    }
    return diagnostics.flatMap((diagnostic) => {
        if (!isTargetNote(diagnostic)) {
            return [diagnostic];
        }
        diagnostic.severity = vscode.DiagnosticSeverity.Hint;
        return notes === "hide" ? [] : [diagnostic];
    });
}

/** Whether a finding is a note of the last pass, whose findings are notes only for targets that were just tried. */
function isTargetNote({ severity, code }: vscode.Diagnostic): boolean {
    const isNote = severity === vscode.DiagnosticSeverity.Information || severity === vscode.DiagnosticSeverity.Hint;
    return isNote && /^J04/.test(String(typeof code === "object" ? code.value : code));
}
