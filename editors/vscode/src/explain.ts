// "Explain this error": the page of a diagnostic code, as a rendered document beside the job.

import * as vscode from "vscode";
import type { ProvideCodeActionsSignature } from "vscode-languageclient";

import type { Compiler } from "./compiler";
import { EXPLAIN } from "./requests";

const SCHEME = "jobc-explain";

/** Serves pages as read-only documents and opens them. */
export class Explain implements vscode.TextDocumentContentProvider {
    constructor(private readonly compiler: Compiler) {}

    register(): vscode.Disposable {
        return vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
    }

    async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
        const code = uri.path.replace(/^\/|\.md$/g, "");
        const page = await this.compiler.ask(EXPLAIN, { code });
        return page.markdown;
    }

    /** Opens the page of a code: the one given, else the one at the cursor, else one of the file's that the user picks. */
    async open(given?: unknown): Promise<void> {
        const code = typeof given === "string" ? given : await chooseCode();
        if (code !== undefined) {
            const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code}.md` });
            await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
        }
    }
}

/** The code of a finding of jobc's, such as `J0101`. */
export function codeOf(diagnostic: vscode.Diagnostic): string | undefined {
    const code = typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code;
    return typeof code === "string" && /^J\d{4}$/.test(code) ? code : undefined;
}

async function chooseCode(): Promise<string | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
        return undefined;
    }
    const all = vscode.languages.getDiagnostics(editor.document.uri);
    const here = all.filter((diagnostic) => diagnostic.range.intersection(editor.selection) !== undefined);
    const line = all.filter((diagnostic) => diagnostic.range.start.line === editor.selection.active.line);
    const near = [here, line, all].find((some) => some.some((diagnostic) => codeOf(diagnostic) !== undefined)) ?? [];
    const items = new Map(near.map((diagnostic) => [codeOf(diagnostic) ?? "", diagnostic.message]));
    items.delete("");
    if (items.size === 0) {
        void vscode.window.showInformationMessage("jobc has found nothing in this file");
        return undefined;
    }
    if (items.size === 1) {
        return [...items.keys()][0];
    }
    const picked = await vscode.window.showQuickPick(
        [...items].map(([label, detail]) => ({ label, detail })),
        { placeHolder: "Which finding?" },
    );
    return picked?.label;
}

/** Adds "Explain J0101" behind the fixes in the light bulb of a finding. */
export async function explainFromLightbulb(
    document: vscode.TextDocument,
    range: vscode.Range,
    context: vscode.CodeActionContext,
    token: vscode.CancellationToken,
    next: ProvideCodeActionsSignature,
): Promise<(vscode.Command | vscode.CodeAction)[]> {
    const actions = (await next(document, range, context, token)) ?? [];
    if (context.only !== undefined && !context.only.contains(vscode.CodeActionKind.QuickFix)) {
        return actions;
    }
    const findings = new Map(context.diagnostics.map((diagnostic) => [codeOf(diagnostic), diagnostic]));
    const pages = [...findings].flatMap(([code, diagnostic]) => {
        if (code === undefined) {
            return [];
        }
        const action = new vscode.CodeAction(`Explain ${code}`, vscode.CodeActionKind.QuickFix);
        action.command = { command: "jobc.explain", title: `Explain ${code}`, arguments: [code] };
        action.diagnostics = [diagnostic];
        return [action];
    });
    return [...actions, ...pages];
}
