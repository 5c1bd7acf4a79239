// `jobc lsp`: the compiler's findings, fixes, names and plans.

import * as vscode from "vscode";
import { LanguageClient, State, type ServerOptions } from "vscode-languageclient/node";

import { JSON, YAML } from "./language";
import { locate, type Found } from "./locate";
import { explainFromLightbulb } from "./explain";
import type { Request } from "./requests";

/**
 * The server, if there is one: a process for YAML and one for JSON, each started with the first file of its kind, and
 * again whenever what it depends on has changed.
 */
export class Compiler implements vscode.Disposable {
    private located: Promise<Found> | undefined;
    private found: string | undefined;
    private readonly clients = new Map<string, Promise<LanguageClient | undefined>>();

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** The program for tasks: the one that serves, else the one of the settings, which then says itself what is wrong. */
    get program(): string {
        return this.found ?? (setting("path", "").trim() || "jobc");
    }

    /** The server for one of our modes, started unless it runs. What stands in the way is told to the user once. */
    start(language: string): Promise<LanguageClient | undefined> {
        let client = this.clients.get(language);
        if (client === undefined) {
            client = this.startOnce(language);
            this.clients.set(language, client);
        }
        return client;
    }

    /** Stops the servers; the next start looks for the program anew. */
    async stop(): Promise<void> {
        const clients = [...this.clients.values()];
        this.clients.clear();
        this.located = undefined;
        this.found = undefined;
        await Promise.all(clients.map(async (client) => (await client)?.dispose().catch(() => undefined)));
    }

    /** Sends a request of ours about a document; an error with a sentence for the user where no server runs. */
    async ask<P, R>(request: Request<P, R>, parameters: P, about?: vscode.TextDocument): Promise<R> {
        const client = await this.start(about?.languageId === JSON ? JSON : YAML);
        if (client?.state !== State.Running) {
            throw new Error("`jobc lsp` is not running; run the command `jobc: Restart the Language Server`");
        }
        return await client.sendRequest<R>(request.method, parameters);
    }

    dispose(): void {
        void this.stop();
    }

    private async startOnce(language: string): Promise<LanguageClient | undefined> {
        const found = await (this.located ??= this.locate());
        if ("problem" in found) {
            return undefined;
        }
        const schemaFeatures = language === YAML && !setting("yamlLanguageServer", true);
        const client = this.client(found.program, language, schemaFeatures);
        try {
            await client.start();
            return client;
        } catch (error) {
            this.output.error(String(error));
            void this.complain(`\`${found.program} lsp\` does not start: ${error instanceof Error ? error.message : String(error)}`);
            return undefined;
        }
    }

    private async locate(): Promise<Found> {
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

    private client(program: string, language: string, schemaFeatures: boolean): LanguageClient {
        const server: ServerOptions = { command: program, args: ["lsp"] };
        return new LanguageClient("jobc", `jobc lsp (${language})`, server, {
            documentSelector: [
                { language, scheme: "file" },
                { language, scheme: "untitled" },
            ],
            initializationOptions: {
                schemaFeatures,
                inlayHints: setting("inlayHints", true),
                codeLens: setting("codeLens", true),
            },
            outputChannel: this.output,
            // The problem matcher's owner too: what a task has found in a closed file goes when the file is opened.
            diagnosticCollectionName: language,
            middleware: { provideCodeActions: explainFromLightbulb },
        });
    }

    private async complain(problem: string): Promise<void> {
        const set = "Set the Path";
        const again = "Look Again";
        const chosen = await vscode.window.showErrorMessage(
            `jobc: ${problem}. Install jobc, or name it by \`jobc.path\`; until then fields are completed, but nothing is checked`,
            set,
            again,
        );
        if (chosen === set) {
            await vscode.commands.executeCommand("workbench.action.openSettings", "jobc.path");
        } else if (chosen === again) {
            await vscode.commands.executeCommand("jobc.restart");
        }
    }
}

/** A setting of ours that is the same for all files. */
export function setting<T>(name: string, absent: T): T {
    return vscode.workspace.getConfiguration("jobc").get(name, absent);
}
