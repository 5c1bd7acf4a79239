// The plan and the Kubernetes manifest beside the job: read-only documents that follow the text in the editor.

import * as vscode from "vscode";

import type { Compiler } from "./compiler";
import { isOurs } from "./language";
import { ARTIFACT, PLAN, type ViewContent } from "./requests";

const SCHEME = "jobc";

/** How long the user must pause before what is beside is made again, in milliseconds. */
const PAUSE = 150;

/** What can stand beside a job. */
export type View = "plan" | "kubernetes";

/** Serves such documents and keeps those that are open up to date. */
export class Beside implements vscode.TextDocumentContentProvider {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;
    /** The last text of each document that could be made, to stay while the job is broken. */
    private readonly last = new Map<string, string>();
    private timer: ReturnType<typeof setTimeout> | undefined;

    constructor(
        private readonly compiler: Compiler,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    register(): vscode.Disposable {
        return vscode.Disposable.from(
            this.changed,
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            vscode.workspace.onDidChangeTextDocument(({ document }) => isOurs(document) && this.refreshSoon()),
            vscode.workspace.onDidSaveTextDocument(() => this.refreshSoon()),
            vscode.workspace.onDidCloseTextDocument(({ uri }) => this.last.delete(uri.toString())),
        );
    }

    /** Opens a view of a job beside it; the keyboard stays in the job. */
    async open(view: View, job: vscode.TextDocument): Promise<void> {
        const stem = (job.uri.path.split("/").at(-1) ?? "job").replace(/\.(ya?ml|json)$/, "");
        const uri = vscode.Uri.from({ scheme: SCHEME, authority: view, path: `/${stem}.${view}.yaml`, query: job.uri.toString() });
        this.changed.fire(uri);
        const document = await vscode.workspace.openTextDocument(uri);
        await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: false });
    }

    async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
        const key = uri.toString();
        try {
            const job = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri.query, true));
            const { text } = await this.ask(uri.authority, job);
            this.last.set(key, text);
            return text;
        } catch (error) {
            const problem = error instanceof Error ? error.message : String(error);
            this.output.debug(`${uri.path}: ${problem}`);
            return headed(problem, this.last.get(key));
        }
    }

    /** Of the target that the server shows. */
    private ask(view: string, job: vscode.TextDocument): Promise<ViewContent> {
        const uri = job.uri.toString();
        return view === "plan" ? this.compiler.ask(PLAN, { uri }) : this.compiler.ask(ARTIFACT, { uri, backend: view });
    }

    /** Makes them again, once the user pauses. */
    refreshSoon(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            for (const { uri } of vscode.workspace.textDocuments) {
                if (uri.scheme === SCHEME) {
                    this.changed.fire(uri);
                }
            }
        }, PAUSE);
    }
}

/** A text under a comment that says why it is not today's. */
export function headed(problem: string, last: string | undefined): string {
    const comment = problem.split("\n").map((line) => `# ${line}\n`).join("");
    return last === undefined ? comment : `${comment}# what follows is from before\n\n${last}`;
}
