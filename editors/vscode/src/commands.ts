// The commands, each bound to the part that carries it out.

import * as vscode from "vscode";

import type { Beside } from "./beside";
import { showDraft } from "./draft";
import type { Explain } from "./explain";
import type { Import } from "./import";
import { isOurs } from "./language";
import type { TargetPicker } from "./target";
import type { Why } from "./why";

/** What is done with a job; each is a command of the program. */
export type Action = "check" | "build" | "run";

/** Checks, builds and runs jobs. */
export interface Runner {
    register(): vscode.Disposable;
    run(action: Action, job: vscode.TextDocument): Promise<void>;
}

/** The parts that commands are about. */
export interface Parts {
    beside: Beside;
    explain: Explain;
    imports: Import;
    why: Why;
    target: TargetPicker;
    runner: Runner;
    output: vscode.LogOutputChannel;
    lookAgain(): Promise<void>;
}

export function registerCommands({ beside, explain, imports, why, target, runner, output, lookAgain }: Parts): vscode.Disposable {
    /** A command about a job: the one that a code lens or a menu names, else the one in the editor. */
    const aboutJob = (name: string, act: (job: vscode.TextDocument) => Promise<void>): vscode.Disposable =>
        vscode.commands.registerCommand(name, async (given?: unknown) => {
            const job = await jobOf(given);
            if (job === undefined) {
                void vscode.window.showErrorMessage("jobc: open a job file first");
            } else {
                await act(job);
            }
        });

    return vscode.Disposable.from(
        aboutJob("jobc.build", (job) => runner.run("build", job)),
        aboutJob("jobc.check", (job) => runner.run("check", job)),
        aboutJob("jobc.run", (job) => runner.run("run", job)),
        aboutJob("jobc.showPlan", (job) => beside.open("plan", job)),
        aboutJob("jobc.showKubernetes", (job) => beside.open("kubernetes", job)),
        aboutJob("jobc.selectTarget", (job) => target.select(job)),
        vscode.commands.registerCommand("jobc.explain", (given?: unknown) => explain.open(given)),
        vscode.commands.registerCommand("jobc.why", (given?: unknown, line?: unknown) => why.show(given, line)),
        vscode.commands.registerCommand("jobc.import", () => imports.open()),
        vscode.commands.registerCommand("jobc.newJob", newJob),
        vscode.commands.registerCommand("jobc.restart", lookAgain),
        vscode.commands.registerCommand("jobc.showOutput", () => output.show()),
    );
}

async function jobOf(given: unknown): Promise<vscode.TextDocument | undefined> {
    const uri = typeof given === "string" ? vscode.Uri.parse(given, true) : given;
    if (uri instanceof vscode.Uri) {
        return await vscode.workspace.openTextDocument(uri);
    }
    const document = vscode.window.activeTextEditor?.document;
    return document !== undefined && isOurs(document) ? document : undefined;
}

/** An empty job.yaml in the first folder of the workspace, or one without a file where there is no folder or it is taken. */
async function newJob(): Promise<void> {
    await showDraft(vscode.workspace.workspaceFolders?.[0]?.uri, "job.yaml", "");
    await vscode.commands.executeCommand("editor.action.triggerSuggest");
}
