// The target in the status bar: what findings, hints, the plan and the manifest beside are about.

import * as vscode from "vscode";

import { setting, type Compiler } from "./compiler";
import { isOurs } from "./language";
import { TARGETS, type Targets } from "./requests";

/** The setting's value for all targets of a file, also those that are not in its `default`. */
const ALL = "*";

/** How long the item may be behind, in milliseconds: what it is asked after may just have been sent to the server. */
const PAUSE = 150;

const TARGETS_FILE = /(^|\/)targets\.ya?ml$/;

/** One line of the list. */
interface Choice extends vscode.QuickPickItem {
    value: string;
}

/** Shows the target of the job in the editor, and lets the user choose another. */
export class TargetPicker {
    private readonly item = vscode.window.createStatusBarItem("jobc.target", vscode.StatusBarAlignment.Right, 101);
    private timer: ReturnType<typeof setTimeout> | undefined;
    private requests = 0;

    constructor(
        private readonly compiler: Compiler,
        private readonly output: vscode.LogOutputChannel,
    ) {
        this.item.name = "jobc target";
        this.item.command = "jobc.selectTarget";
    }

    register(): vscode.Disposable {
        const aboutTargets = ({ uri }: { uri: vscode.Uri }): void => {
            if (TARGETS_FILE.test(uri.path)) {
                this.refreshSoon();
            }
        };
        const files = vscode.workspace.createFileSystemWatcher("**/targets.{yaml,yml}");
        this.refreshSoon();
        return vscode.Disposable.from(
            this.item,
            files,
            files.onDidCreate(() => this.refreshSoon()),
            files.onDidChange(() => this.refreshSoon()),
            files.onDidDelete(() => this.refreshSoon()),
            vscode.window.onDidChangeActiveTextEditor(() => this.refreshSoon()),
            // A change of mode is a close and an open.
            vscode.workspace.onDidOpenTextDocument(() => this.refreshSoon()),
            vscode.workspace.onDidChangeTextDocument(({ document }) => aboutTargets(document)),
            { dispose: () => clearTimeout(this.timer) },
        );
    }

    /** Makes the item again after a moment. */
    refreshSoon(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.refresh(), PAUSE);
    }

    /** Asks the user for a target and keeps it in the settings: of the workspace, where there is one. */
    async select(job: vscode.TextDocument): Promise<void> {
        let known: Targets;
        try {
            known = await this.compiler.ask(TARGETS, { uri: job.uri.toString() });
        } catch (error) {
            void vscode.window.showErrorMessage(`jobc: ${error instanceof Error ? error.message : String(error)}`);
            return;
        }
        const now = effective(setting("target", ""), known);
        const choice = await vscode.window.showQuickPick(choices(known, now), {
            title: known.file === null ? "Targets built into jobc" : `Targets of ${vscode.workspace.asRelativePath(await this.compiler.file(known.file))}`,
            placeHolder: "The target of findings, hints, plan and manifest",
            matchOnDescription: true,
        });
        if (choice !== undefined) {
            const settings = vscode.workspace.getConfiguration("jobc");
            const inWorkspace = vscode.workspace.workspaceFolders !== undefined;
            const elsewhere = inWorkspace && (settings.inspect("target")?.globalValue ?? "") !== "";
            await settings.update("target", choice.value === "" && !elsewhere ? undefined : choice.value, !inWorkspace);
        }
    }

    /** The targets that the user has chosen for a job; none where the command line's own choice is shown. */
    async chosen(job: vscode.TextDocument): Promise<string[]> {
        const wanted = setting("target", "");
        if (wanted === "") {
            return [];
        }
        try {
            const known = await this.compiler.ask(TARGETS, { uri: job.uri.toString() });
            return effective(wanted, known) === "" ? [] : known.shown;
        } catch {
            return [];
        }
    }

    private async refresh(): Promise<void> {
        const request = (this.requests += 1);
        const document = vscode.window.activeTextEditor?.document;
        if (document === undefined || !isOurs(document) || TARGETS_FILE.test(document.uri.path)) {
            this.item.hide();
            return;
        }
        try {
            const known = await this.compiler.ask(TARGETS, { uri: document.uri.toString() });
            if (request === this.requests) {
                this.show(known);
            }
        } catch (error) {
            // There is no server, or it knows no targets: it is older than this extension.
            this.output.debug(`no targets: ${error instanceof Error ? error.message : String(error)}`);
            if (request === this.requests) {
                this.item.hide();
            }
        }
    }

    private show(known: Targets): void {
        const wanted = setting("target", "");
        const now = effective(wanted, known);
        const words = { [ALL]: "all targets", "": isSubset(known) ? "default targets" : "all targets" }[now] ?? now;
        this.item.text = `$(target) ${words}`;
        const missing = wanted !== "" && now === "" ? `; this job has no target \`${wanted}\`` : "";
        const file = known.file === null ? "; there is no targets file" : "";
        this.item.tooltip = `jobc: shown for ${known.shown.join(", ")}${missing}${file}`;
        this.item.show();
    }
}

/** What counts of the setting for a job: nothing where the job has no such target. */
export function effective(wanted: string, known: Targets): string {
    if (wanted === ALL) {
        return known.file === null || !isSubset(known) ? "" : ALL;
    }
    return known.targets.some(({ name }) => name === wanted) ? wanted : "";
}

/** Whether the command line uses fewer targets than there are. */
function isSubset(known: Targets): boolean {
    return known.default.length > 0 && known.default.length < known.targets.length;
}

/** The lines of the list: all of a file, the default if that is fewer, and each target. */
export function choices(known: Targets, now: string): Choice[] {
    const names = known.targets.map(({ name }) => name).join(", ");
    const wide = isSubset(known)
        ? [
              { label: "default", description: known.default.join(", "), value: "" },
              ...(known.file === null ? [] : [{ label: "all", description: names, value: ALL }]),
          ]
        : [{ label: "all", description: names, value: "" }];
    const each = known.targets.map(({ name, description, backends }) => ({
        label: name,
        description: backends.join(", "),
        ...(description !== "" && { detail: description }),
        value: name,
    }));
    return [...wide, ...each].map((choice) => (choice.value === now ? { ...choice, label: `$(check) ${choice.label}` } : choice));
}
