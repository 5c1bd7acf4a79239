// `jobc lsp`: the compiler's findings, fixes, names and plans.

import * as vscode from "vscode";
import { LanguageClient, State, type ServerOptions } from "vscode-languageclient/node";

import { JSON, YAML } from "./language";
import { locate } from "./locate";
import { explainFromLightbulb } from "./explain";
import type { Request } from "./requests";

/** The server, if there is one: started with the first job file, again whenever what it depends on has changed. */
export class Compiler implements vscode.Disposable {
    private clients: LanguageClient[] = [];
    private starting: Promise<void> | undefined;
    private found: string | undefined;

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** The program for tasks: the one that serves, else the one of the settings, which then says itself what is wrong. */
    get program(): string {
        return this.found ?? (setting("path", "").trim() || "jobc");
    }

    /** Starts the server unless it runs or is being started. What stands in the way is told to the user once. */
    start(): Promise<void> {
        return (this.starting ??= this.startOnce());
    }

    /** Stops the server, looks for the program anew and starts it. */
    async restart(): Promise<void> {
        await this.stop();
        await this.start();
    }

    /** Sends a request of ours about a document; an error with a sentence for the user where no server runs. */
    async ask<P, R>(request: Request<P, R>, parameters: P, about?: vscode.TextDocument): Promise<R> {
        await this.start();
        const client = about?.languageId === JSON ? this.clients[1] : this.clients[0];
        if (client?.state !== State.Running) {
            throw new Error("`jobc lsp` is not running; run the command `jobc: Restart the Language Server`");
        }
        return await client.sendRequest<R>(request.method, parameters);
    }

    async stop(): Promise<void> {
        const clients = this.clients.splice(0);
        this.starting = undefined;
        this.found = undefined;
        await Promise.all(clients.map((client) => client.dispose().catch(() => undefined)));
    }

    dispose(): void {
        void this.stop();
    }

    private async startOnce(): Promise<void> {
        const found = await locate(setting("path", ""), this.extension.extensionPath);
        if ("problem" in found) {
            this.output.error(found.problem);
            void vscode.commands.executeCommand("setContext", "jobc.found", false);
            void this.complain(found.problem);
            return;
        }
        this.output.info(`starting ${found.program}`);
        this.found = found.program;
        // Fields in JSON come from jobc itself, since yaml-language-server does not read JSON with comments.
        this.clients = [
            this.client(found.program, YAML, !setting("yamlLanguageServer", true)),
            this.client(found.program, JSON, true),
        ];
        try {
            await Promise.all(this.clients.map((client) => client.start()));
            void vscode.commands.executeCommand("setContext", "jobc.found", true);
        } catch (error) {
            this.output.error(String(error));
            void this.complain(`\`${found.program} lsp\` does not start: ${error instanceof Error ? error.message : String(error)}`);
        }
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
            synchronize: {
                fileEvents: vscode.workspace.createFileSystemWatcher("**/{targets.yaml,targets.yml,requirements*.txt,Dockerfile*}"),
            },
            outputChannel: this.output,
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
            await this.restart();
        }
    }
}

/** A setting of ours that is the same for all files. */
export function setting<T>(name: string, absent: T): T {
    return vscode.workspace.getConfiguration("jobc").get(name, absent);
}
