// What the extension does on the desktop and on the web: files are recognised, the server is started with the first of
// them, and what is built is shown beside a job.

import * as vscode from "vscode";

import { Beside } from "./beside";
import { registerCommands, type Runner } from "./commands";
import { Compiler, type Launcher } from "./compiler";
import { Explain } from "./explain";
import { Import } from "./import";
import { adoptDocuments, isOurs } from "./language";
import { TargetPicker } from "./target";
import { Why } from "./why";

/** The settings that the server is started with. */
const STARTED_WITH = ["path", "inlayHints", "codeLens", "whyLens"];

/** Starts everything; `runner` makes what builds and runs jobs. */
export function activateWith(
    context: vscode.ExtensionContext,
    output: vscode.LogOutputChannel,
    launcher: Launcher,
    runner: (target: TargetPicker) => Runner,
): void {
    const compiler = new Compiler(launcher, output);
    const beside = new Beside(compiler, output);
    const explain = new Explain(compiler);
    const imports = new Import(compiler);
    const why = new Why(compiler);
    const target = new TargetPicker(compiler, output);

    const start = (document: vscode.TextDocument): void => {
        if (isOurs(document)) {
            void compiler.start();
        }
    };
    /** The server is started anew for the files that are open; where none is, with the next one. */
    const restart = async (): Promise<void> => {
        await compiler.stop();
        vscode.workspace.textDocuments.forEach(start);
        target.refreshSoon();
    };
    /** The same when the user asks, who wants to know whether there is a program. */
    const lookAgain = async (): Promise<void> => {
        await restart();
        await compiler.start();
    };

    const runs = runner(target);
    context.subscriptions.push(
        output,
        compiler,
        beside.register(),
        explain.register(),
        imports.register(),
        why.register(),
        runs.register(),
        target.register(),
        registerCommands({ beside, explain, imports, why, target, runner: runs, output, lookAgain }),
        vscode.workspace.onDidOpenTextDocument(start),
        adoptDocuments(launcher.schemes),
        // With its file the targets of a job may be others, also where its findings are the same.
        launcher.onDidServeFiles?.(() => target.refreshSoon()) ?? new vscode.Disposable(() => undefined),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (STARTED_WITH.some((name) => event.affectsConfiguration(`jobc.${name}`))) {
                void restart();
            }
            if (event.affectsConfiguration("jobc.target")) {
                void compiler.showTarget().then(() => {
                    target.refreshSoon();
                    beside.refreshSoon();
                });
            }
        }),
    );
    vscode.workspace.textDocuments.forEach(start);
}
