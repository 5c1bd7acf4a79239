// The server as a program of this machine: `jobc lsp`.

import * as vscode from "vscode";
import { LanguageClient, type BaseLanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

import { setting, type Launcher } from "./compiler";
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
        const set = "Set the Path";
        const again = "Look Again";
        const chosen = await vscode.window.showErrorMessage(
            `jobc: ${problem}. Install jobc, or name it by \`jobc.path\`; until then nothing is completed or checked`,
            set,
            again,
        );
        if (chosen === set) {
            await vscode.commands.executeCommand("workbench.action.openSettings", "jobc.path");
        } else if (chosen === again) {
            await vscode.commands.executeCommand("jobc.restart");
        }
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
