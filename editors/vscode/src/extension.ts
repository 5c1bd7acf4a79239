// The extension: files are recognised, two servers are started with the first of them, commands and tasks are offered.

import * as vscode from "vscode";

import { Beside } from "./beside";
import { registerCommands } from "./commands";
import { Compiler } from "./compiler";
import { Explain } from "./explain";
import { Fields } from "./fields";
import { adoptDocuments, isOurs } from "./language";
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
            void compiler.start();
            fields.start().catch((error: unknown) => output.error(String(error)));
        }
    };
    const restart = async (): Promise<void> => {
        await fields.stop();
        await compiler.restart();
        vscode.workspace.textDocuments.forEach(start);
    };

    context.subscriptions.push(
        output,
        compiler,
        fields,
        beside.register(),
        explain.register(),
        tasks.register(),
        registerCommands({ beside, explain, tasks, output, restart }),
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
