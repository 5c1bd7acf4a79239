// The extension: files are recognised, the server is started with the first of them, commands and tasks are offered.

import * as vscode from "vscode";

import { Beside } from "./beside";
import { registerCommands } from "./commands";
import { Compiler } from "./compiler";
import { Explain } from "./explain";
import { adoptDocuments, isOurs } from "./language";
import { TargetPicker } from "./target";
import { Tasks } from "./tasks";

/** The settings that the server is started with. */
const STARTED_WITH = ["path", "inlayHints", "codeLens", "targetNotes"];

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel("jobc", { log: true });
    const compiler = new Compiler(context, output);
    const beside = new Beside(compiler, output);
    const explain = new Explain(compiler);
    const target = new TargetPicker(compiler, output);
    const tasks = new Tasks(compiler, target);

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

    context.subscriptions.push(
        output,
        compiler,
        beside.register(),
        explain.register(),
        tasks.register(),
        target.register(),
        registerCommands({ beside, explain, target, tasks, output, lookAgain }),
        vscode.workspace.onDidOpenTextDocument(start),
        adoptDocuments(),
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
