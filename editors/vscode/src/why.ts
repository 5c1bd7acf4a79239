// What a line of a job causes: the lines of built files, as a peek at the line. The files are read-only documents that no
// disk has; in one of them, the command leads back to the lines of the job.

import * as vscode from "vscode";

import type { Compiler } from "./compiler";
import { isOurs } from "./language";
import { BUILD, type BuiltFile, WHY } from "./requests";

const SCHEME = "jobc-built";

/** Serves built files, and answers from where a line comes. */
export class Why implements vscode.TextDocumentContentProvider {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;

    constructor(private readonly compiler: Compiler) {}

    register(): vscode.Disposable {
        return vscode.Disposable.from(this.changed, vscode.workspace.registerTextDocumentContentProvider(SCHEME, this));
    }

    /** A line of a job or of a built file: that which a lens names, else that of the cursor. */
    async show(given?: unknown, line?: unknown): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        const uri = typeof given === "string" ? vscode.Uri.parse(given, true) : editor?.document.uri;
        if (uri === undefined) {
            return;
        }
        const at = new vscode.Position(typeof line === "number" ? line : (editor?.selection.active.line ?? 0), 0);
        try {
            const document = await vscode.workspace.openTextDocument(uri);
            if (uri.scheme !== SCHEME && !isOurs(document)) {
                void vscode.window.showErrorMessage("jobc: open a job file first");
                return;
            }
            const found = uri.scheme === SCHEME ? await this.causes(uri, at.line) : await this.effects(uri, at.line);
            if (found.length === 0) {
                void vscode.window.showInformationMessage("jobc: nothing is recorded for this line");
                return;
            }
            await vscode.commands.executeCommand("editor.action.peekLocations", uri, at, found, "peek");
        } catch (error) {
            void vscode.window.showErrorMessage(`jobc: ${error instanceof Error ? error.message : String(error)}`);
        }
    }

    private async effects(job: vscode.Uri, line: number): Promise<vscode.Location[]> {
        const { lines } = await this.compiler.ask(WHY, { uri: job.toString(), line });
        const locations = lines.map((built) => new vscode.Location(builtUri(job, built), new vscode.Position(built.line, 0)));
        // What was open before may be of an older text.
        new Set(locations.map(({ uri }) => uri.toString())).forEach((uri) => this.changed.fire(vscode.Uri.parse(uri, true)));
        return locations;
    }

    private async causes(uri: vscode.Uri, line: number): Promise<vscode.Location[]> {
        const { job, file } = builtFile(uri);
        const { causes } = await this.compiler.ask(WHY, { uri: job.toString(), line, file });
        const places = causes.flatMap((cause) => (cause.line === null ? [] : [new vscode.Location(job, new vscode.Position(cause.line, 0))]));
        if (places.length === 0 && causes.length > 0) {
            void vscode.window.showInformationMessage(`jobc: ${causes.map(({ text }) => text).join("; ")}`);
        }
        return places;
    }

    async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
        const { job, file } = builtFile(uri);
        const { files } = await this.compiler.ask(BUILD, { uri: job.toString() });
        const found = files.find((one) => one.job === file.job && one.target === file.target && one.path === file.path);
        return found?.text ?? "";
    }
}

function builtUri(job: vscode.Uri, { job: name, target, path }: BuiltFile): vscode.Uri {
    return vscode.Uri.from({ scheme: SCHEME, path: `/${name}/${target}/${path}`, query: JSON.stringify({ job: job.toString(), file: { job: name, target, path } }) });
}

function builtFile(uri: vscode.Uri): { job: vscode.Uri; file: BuiltFile } {
    const { job, file } = JSON.parse(uri.query) as { job: string; file: BuiltFile };
    return { job: vscode.Uri.parse(job, true), file };
}
