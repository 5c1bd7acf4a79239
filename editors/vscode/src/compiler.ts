// The language server: completion, and the compiler's findings, fixes, names and plans.

import * as vscode from "vscode";
import {
    DidChangeConfigurationNotification,
    InlayHintRequest,
    State,
    type BaseLanguageClient,
    type Diagnostic,
    type LanguageClientOptions,
    type StaticFeature,
} from "vscode-languageclient";

import { JSON, YAML } from "./language";
import { explainFromLightbulb } from "./explain";
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

/** How often an answer is asked for again because of files that were given meanwhile: one names the next. */
const MAX_ROUNDS = 5;

/** How long it takes at most until the files are given that an answer named, in milliseconds. */
const SERVED_WITHIN = 500;

/** Where the server comes from: a program, or WebAssembly in a worker. */
export interface Launcher {
    /** What it is called in messages. */
    readonly name: string;
    /** Whether jobs can be built and run here, for the lenses above a job. */
    readonly codeLens: boolean;
    /** The schemes of the files that it reads; none for all. */
    readonly schemes: string[];
    /** Fires when the server was given files that it had asked for; a program reads them itself. */
    readonly onDidServeFiles?: vscode.Event<void>;
    /** A client that is not started; undefined if the user was told why there is none. */
    prepare(options: LanguageClientOptions): Promise<BaseLanguageClient | undefined>;
    /** Looks anew the next time. */
    forget(): void;
    /** Tells the user what stands in the way. */
    complain(problem: string): Promise<void>;
}

/** The server, if there is one: started with the first of our files, and again whenever what it depends on has changed. */
export class Compiler implements vscode.Disposable {
    private client: Promise<BaseLanguageClient | undefined> | undefined;

    constructor(
        private readonly launcher: Launcher,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    /** The server, started unless it runs. What stands in the way is told to the user once. */
    start(): Promise<BaseLanguageClient | undefined> {
        return (this.client ??= this.startOnce());
    }

    /** Stops the server; the next start looks for it anew. */
    async stop(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        this.launcher.forget();
        await (await client)?.dispose().catch(() => undefined);
    }

    /** Sends a request of ours about a file or a code; an error with a sentence for the user where no server runs. */
    async ask<P extends object, R>(request: Request<P, R>, parameters: P): Promise<R> {
        const client = await this.start();
        if (client?.state !== State.Running) {
            throw new Error(`${this.launcher.name} is not running; run the command \`jobc: Restart the Language Server\``);
        }
        const { uri } = parameters as { uri?: string };
        const named = uri === undefined ? parameters : { ...parameters, uri: client.code2ProtocolConverter.asUri(vscode.Uri.parse(uri, true)) };
        return await client.sendRequest<R>(request.method, named);
    }

    /** The same where the answer depends on files beside: those that a server without files has asked for are given first. */
    async askWithFiles<P extends object, R>(request: Request<P, R>, parameters: P): Promise<R> {
        let answer = await this.ask(request, parameters);
        for (let round = 0; round < MAX_ROUNDS && (await this.servesFiles()); round += 1) {
            answer = await this.ask(request, parameters);
        }
        return answer;
    }

    /** Whether the server is given files that it has asked for. */
    private async servesFiles(): Promise<boolean> {
        const { onDidServeFiles } = this.launcher;
        if (onDidServeFiles === undefined) {
            return false;
        }
        return await new Promise((resolve) => {
            const answer = (isServed: boolean): void => {
                clearTimeout(timer);
                listening.dispose();
                resolve(isServed);
            };
            const timer = setTimeout(() => answer(false), SERVED_WITHIN);
            const listening = onDidServeFiles(() => answer(true));
        });
    }

    /** Findings of the server as VS Code has them. */
    async diagnostics(findings: Diagnostic[]): Promise<vscode.Diagnostic[]> {
        return (await (await this.start())?.protocol2CodeConverter.asDiagnostics(findings)) ?? [];
    }

    /** The file that the server names. */
    async file(uri: string): Promise<vscode.Uri> {
        return (await this.start())?.protocol2CodeConverter.asUri(uri) ?? vscode.Uri.parse(uri, true);
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

    private async startOnce(): Promise<BaseLanguageClient | undefined> {
        try {
            const client = await this.launcher.prepare(this.options());
            client?.registerFeature(SENT_FINDINGS);
            await client?.start();
            return client;
        } catch (error) {
            this.output.error(String(error));
            void this.launcher.complain(`${this.launcher.name} does not start: ${error instanceof Error ? error.message : String(error)}`);
            return undefined;
        }
    }

    private options(): LanguageClientOptions {
        const { codeLens, schemes } = this.launcher;
        const languages = [YAML, JSON];
        return {
            documentSelector:
                schemes.length === 0
                    ? languages.map((language) => ({ language }))
                    : languages.flatMap((language) => schemes.map((scheme) => ({ language, scheme }))),
            initializationOptions: {
                inlayHints: setting("inlayHints", true),
                codeLens: codeLens && setting("codeLens", true),
                whyLens: setting("whyLens", true),
                target: setting("target", ""),
            },
            outputChannel: this.output,
            // The problem matcher's owner too: what a task has found in a closed file goes when the file is opened.
            diagnosticCollectionName: "jobc",
            middleware: {
                provideCodeActions: explainFromLightbulb,
            },
        };
    }
}

/** A setting of ours that is the same for all files. */
export function setting<T>(name: string, absent: T): T {
    return vscode.workspace.getConfiguration("jobc").get(name, absent);
}
