// The extension: files are recognised, servers are started with the first of them, commands and tasks are offered.

import * as vscode from "vscode";

import { Beside } from "./beside";
import { registerCommands } from "./commands";
import { Compiler } from "./compiler";
import { Explain } from "./explain";
import { Fields } from "./fields";
import { adoptDocuments, isOurs, YAML } from "./language";
import { Tasks } from "./tasks";

/** The settings that servers are started with. */
const STARTED_WITH = ["path", "yamlLanguageServer", "inlayHints", "codeLens"];

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel("jobc", { log: true });
    const compiler = new Compiler(context, output);
    const fields = new Fields(context, output);
    const beside = new Beside(compiler, output);
    const explain = new Explain(compiler);
    const tasks = new Tasks(compiler);

    const start = (document: vscode.TextDocument): void => {
        if (isOurs(document)) {
            void compiler.start(document.languageId);
            fields.start(document.languageId).catch((error: unknown) => output.error(String(error)));
        }
    };
    /** Servers are started anew for the files that are open; where none is, with the next one. */
    const restart = async (): Promise<void> => {
        await Promise.all([fields.stop(), compiler.stop()]);
        vscode.workspace.textDocuments.forEach(start);
    };
    /** The same when the user asks, who wants to know whether there is a program. */
    const lookAgain = async (): Promise<void> => {
        await restart();
        await compiler.start(YAML);
    };

    context.subscriptions.push(
        output,
        compiler,
        fields,
        beside.register(),
        explain.register(),
        tasks.register(),
        registerCommands({ beside, explain, tasks, output, lookAgain }),
        vscode.workspace.onDidOpenTextDocument(start),
        adoptDocuments(),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (STARTED_WITH.some((name) => event.affectsConfiguration(`jobc.${name}`))) {
                void restart();
            }
        }),
    );
    vscode.workspace.textDocuments.forEach(start);
}
