// `jobc lsp`: completion, and the compiler's findings, fixes, names and plans.

import * as vscode from "vscode";
import {
    DidChangeConfigurationNotification,
    InlayHintRequest,
    LanguageClient,
    State,
    type ServerOptions,
    type StaticFeature,
} from "vscode-languageclient/node";

import { JSON, YAML } from "./language";
import { locate, type LocateResult } from "./locate";
import { explainFromLightbulb } from "./explain";
import { asWanted, type TargetNotes } from "./notes";
import type { Request } from "./requests";

/**
 * Has the server send findings rather than wait for requests: those that are requested are kept under a name of their
 * own, and a task's findings would stand beside them.
 */
const SENT_FINDINGS: StaticFeature = {
    fillClientCapabilities: ({ textDocument }) => delete textDocument?.diagnostic,
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
};

/** The server, if there is one: started with the first of our files, and again whenever what it depends on has changed. */
export class Compiler implements vscode.Disposable {
    private located: Promise<LocateResult> | undefined;
    private found: string | undefined;
    private client: Promise<LanguageClient | undefined> | undefined;

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** The program for tasks: the one that serves, else the one of the settings, which then says itself what is wrong. */
    get program(): string {
        return this.found ?? (setting("path", "").trim() || "jobc");
    }

    /** The server, started unless it runs. What stands in the way is told to the user once. */
    start(): Promise<LanguageClient | undefined> {
        return (this.client ??= this.startOnce());
    }

    /** Stops the server; the next start looks for the program anew. */
    async stop(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        this.located = undefined;
        this.found = undefined;
        await (await client)?.dispose().catch(() => undefined);
    }

    /** Sends a request of ours; an error with a sentence for the user where no server runs. */
    async ask<P, R>(request: Request<P, R>, parameters: P): Promise<R> {
        const client = await this.start();
        if (client?.state !== State.Running) {
            throw new Error("`jobc lsp` is not running; run the command `jobc: Restart the Language Server`");
        }
        return await client.sendRequest<R>(request.method, parameters);
    }

    /** Tells the server that runs which target to show. */
    async showTarget(): Promise<void> {
        const client = await this.client;
        if (client?.state === State.Running) {
            const settings = { jobc: { target: setting("target", "") } };
            await client.sendNotification(DidChangeConfigurationNotification.type, { settings });
            const hints = client.getFeature(InlayHintRequest.method);
            for (const document of vscode.workspace.textDocuments) {
                hints.getProvider(document)?.onDidChangeInlayHints.fire();
            }
        }
    }

    dispose(): void {
        void this.stop();
    }

    private async startOnce(): Promise<LanguageClient | undefined> {
        const found = await (this.located ??= this.locate());
        if ("problem" in found) {
            return undefined;
        }
        const client = this.make(found.program);
        try {
            await client.start();
            return client;
        } catch (error) {
            this.output.error(String(error));
            void this.complain(`\`${found.program} lsp\` does not start: ${error instanceof Error ? error.message : String(error)}`);
            return undefined;
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

    private make(program: string): LanguageClient {
        const server: ServerOptions = { command: program, args: ["lsp"] };
        const client = new LanguageClient("jobc", "jobc lsp", server, {
            documentSelector: [YAML, JSON].flatMap((language) => [
                { language, scheme: "file" },
                { language, scheme: "untitled" },
            ]),
            initializationOptions: {
                inlayHints: setting("inlayHints", true),
                codeLens: setting("codeLens", true),
                target: setting("target", ""),
            },
            outputChannel: this.output,
            // The problem matcher's owner too: what a task has found in a closed file goes when the file is opened.
            diagnosticCollectionName: "jobc",
            middleware: {
                provideCodeActions: explainFromLightbulb,
                handleDiagnostics: (uri, diagnostics, next) => next(uri, asWanted(diagnostics, setting<TargetNotes>("targetNotes", "quiet"))),
            },
        });
        client.registerFeature(SENT_FINDINGS);
        return client;
    }

    private async complain(problem: string): Promise<void> {
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
}

/** A setting of ours that is the same for all files. */
export function setting<T>(name: string, absent: T): T {
    return vscode.workspace.getConfiguration("jobc").get(name, absent);
}
