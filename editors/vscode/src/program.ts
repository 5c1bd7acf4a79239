// The server as a program of this machine: `jobc lsp`.

import * as vscode from "vscode";
import { LanguageClient, type BaseLanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

import { setting, type Launcher } from "./compiler";
import { installWays, type InstallWay } from "./install";
import { locate, type LocateResult } from "./locate";

export class Program implements Launcher {
    readonly codeLens = true;
    readonly schemes = ["file", "untitled"];
    private located: Promise<LocateResult> | undefined;
    private found: string | undefined;

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** The program for tasks: the one that serves, else the one of the settings, which then says itself what is wrong. */
    get path(): string {
        return this.found ?? (setting("path", "").trim() || "jobc");
    }

    get name(): string {
        return `\`${this.path} lsp\``;
    }

    async prepare(options: LanguageClientOptions): Promise<BaseLanguageClient | undefined> {
        const found = await (this.located ??= this.locate());
        if ("problem" in found) {
            return undefined;
        }
        return new LanguageClient("jobc", "jobc lsp", { command: found.program, args: ["lsp"] }, options);
    }

    forget(): void {
        this.located = undefined;
        this.found = undefined;
    }

    async complain(problem: string): Promise<void> {
        const install = "Install";
        const set = "Set the Path";
        const again = "Look Again";
        const ways = installWays();
        const chosen = await vscode.window.showErrorMessage(
            `jobc: ${problem}. Install jobc, or name it by \`jobc.path\`; until then nothing is completed or checked`,
            ...(ways.length > 0 ? [install] : []),
            set,
            again,
        );
        if (chosen === install) {
            await this.install(ways);
        } else if (chosen === set) {
            await vscode.commands.executeCommand("workbench.action.openSettings", "jobc.path");
        } else if (chosen === again) {
            await vscode.commands.executeCommand("jobc.restart");
        }
    }

    /** Runs the command that the user chooses in a terminal, and looks for the program when it has ended. */
    private async install(ways: readonly InstallWay[]): Promise<void> {
        const items = ways.map(({ label, command }) => ({ label, detail: command }));
        const chosen = await vscode.window.showQuickPick(items, { title: "Install jobc", placeHolder: "The command to run in a terminal" });
        if (chosen === undefined) {
            return;
        }
        const scope = vscode.workspace.workspaceFolders === undefined ? vscode.TaskScope.Global : vscode.TaskScope.Workspace;
        const task = new vscode.Task({ type: "shell" }, scope, "install", "jobc", new vscode.ShellExecution(chosen.detail));
        const ended = vscode.tasks.onDidEndTask(({ execution }) => {
            if (execution.task.source === task.source && execution.task.name === task.name) {
                ended.dispose();
                void vscode.commands.executeCommand("jobc.restart");
            }
        });
        await vscode.tasks.executeTask(task);
    }

    private async locate(): Promise<LocateResult> {
        const found = await locate(setting("path", ""), this.extension.extensionPath);
        void vscode.commands.executeCommand("setContext", "jobc.found", "program" in found);
        if ("program" in found) {
            this.output.info(`the program is ${found.program}`);
            this.found = found.program;
        } else {
            this.output.error(found.problem);
            void this.complain(found.problem);
        }
        return found;
    }
}
