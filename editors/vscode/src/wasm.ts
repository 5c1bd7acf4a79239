// The server as WebAssembly in a worker (`editors/web`). It reads no files: it asks for those that a job names.

import * as vscode from "vscode";
import { BrowserMessageReader, BrowserMessageWriter, LanguageClient, type BaseLanguageClient, type LanguageClientOptions } from "vscode-languageclient/browser";

import type { Launcher } from "./compiler";
import { fromProtocol, toProtocol } from "./virtual";

/** What is at a path: a file's text, or whether there is a directory. */
type Entry = string | boolean;

export class Wasm implements Launcher {
    readonly name = "the language server";
    readonly codeLens = false;
    readonly schemes = [];
    private readonly served = new vscode.EventEmitter<void>();
    readonly onDidServeFiles = this.served.event;
    private running: vscode.Disposable | undefined;
    private watching: vscode.Disposable | undefined;

    constructor(
        private readonly extension: vscode.ExtensionContext,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    async prepare(options: LanguageClientOptions): Promise<BaseLanguageClient | undefined> {
        const part = (name: string): Thenable<Uint8Array> => vscode.workspace.fs.readFile(vscode.Uri.joinPath(this.extension.extensionUri, "dist", name));
        const [script, module] = await Promise.all([part("worker.js"), part("jobc.wasm")]);
        // By its text: where the extension is installed on a remote host, workers of its own URLs are refused.
        const address = URL.createObjectURL(new Blob([script.slice()], { type: "text/javascript" }));
        const worker = new Worker(address, { name: "jobc" });
        this.running = new vscode.Disposable(() => {
            worker.terminate();
            URL.revokeObjectURL(address);
        });
        worker.postMessage({ wasm: module.slice().buffer });
        const client = new LanguageClient("jobc", "jobc", () => Promise.resolve({ reader: new BrowserMessageReader(worker), writer: new BrowserMessageWriter(worker) }), {
            ...options,
            uriConverters: { code2Protocol: toProtocol, protocol2Code: fromProtocol },
        });
        this.serveFiles(client);
        client.onNotification("jobc/stopped", ({ reason }: { reason: string }) => {
            this.output.error(reason);
            void this.complain("the compiler has failed on a text, which is a bug of jobc");
        });
        this.output.info("the server is WebAssembly in a worker");
        return client;
    }

    forget(): void {
        this.watching?.dispose();
        this.running?.dispose();
    }

    async complain(problem: string): Promise<void> {
        const again = "Start Again";
        const chosen = await vscode.window.showErrorMessage(`jobc: ${problem}`, again);
        if (chosen === again) {
            await vscode.commands.executeCommand("jobc.restart");
        }
    }

    /** Gives the server the files it asks for, and again when they change. */
    private serveFiles(client: BaseLanguageClient): void {
        const known = new Set<string>();
        const give = async (paths: string[]): Promise<void> => {
            const entries = await Promise.all(paths.map(async (path) => [path, await read(path)] as const));
            await client.sendNotification("jobc/files", Object.fromEntries(entries));
            this.served.fire();
        };
        const changed = (uri: vscode.Uri): void => {
            const path = decodeURIComponent(toProtocol(uri).slice("file://".length));
            if (known.has(path)) {
                void give([path]);
            }
        };
        client.onNotification("jobc/wanted", ({ paths }: { paths: string[] }) => {
            paths.forEach((path) => known.add(path));
            void give(paths);
        });
        const watcher = vscode.workspace.createFileSystemWatcher("**/*");
        this.watching = vscode.Disposable.from(watcher, watcher.onDidChange(changed), watcher.onDidCreate(changed), watcher.onDidDelete(changed));
    }
}

async function read(path: string): Promise<Entry> {
    const uri = fromProtocol(`file://${encodeURI(path)}`);
    // A workspace is a repository, also where its host hides `.git`: targets are looked for up to there.
    const isRoot = vscode.workspace.workspaceFolders?.some((folder) => vscode.Uri.joinPath(folder.uri, ".git").toString() === uri.toString());
    if (isRoot ?? false) {
        return true;
    }
    try {
        const { type } = await vscode.workspace.fs.stat(uri);
        if ((type & vscode.FileType.Directory) !== 0) {
            return true;
        }
        return new TextDecoder("utf-8", { fatal: true }).decode(await vscode.workspace.fs.readFile(uri));
    } catch {
        return false;
    }
}
