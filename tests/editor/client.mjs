// A scripted editor: starts a language server over standard input and output and keeps what it publishes.

import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

import { until } from "./check.mjs";

/** The client capabilities: everything that a test uses, like VS Code. */
const CAPABILITIES = {
    general: { positionEncodings: ["utf-16"] },
    textDocument: {
        publishDiagnostics: { relatedInformation: true, codeDescriptionSupport: true, dataSupport: true, versionSupport: true },
        codeAction: {
            codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source.fixAll"] } },
            isPreferredSupport: true,
            dataSupport: true,
            resolveSupport: { properties: ["edit"] },
        },
        completion: {
            completionItem: { snippetSupport: true, documentationFormat: ["markdown"], insertReplaceSupport: true },
            contextSupport: true,
        },
        documentSymbol: { hierarchicalDocumentSymbolSupport: true },
        hover: { contentFormat: ["markdown"] },
        rename: { prepareSupport: true },
    },
    workspace: { configuration: true, workspaceEdit: { documentChanges: true } },
};

export class Client {
    diagnostics = new Map();
    versions = new Map();
    log = "";

    /** Starts and initializes a server. `rpc` is the module vscode-jsonrpc; `answers` handle requests of the server. */
    static async start(rpc, command, words, { root, options, answers = {} } = {}) {
        const child = spawn(command, words, { stdio: "pipe" });
        const client = new Client();
        client.child = child;
        client.exit = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
        // A server that has exited is reported below.
        child.stdin.on("error", () => undefined);
        child.stderr.on("data", (chunk) => (client.log += chunk));
        const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
        client.connection = connection;
        connection.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics, version }) => {
            client.diagnostics.set(uri, diagnostics);
            client.versions.set(uri, version);
        });
        for (const [method, answer] of Object.entries(answers)) {
            connection.onRequest(method, answer);
        }
        connection.onRequest("client/registerCapability", () => null);
        connection.onRequest("workspace/configuration", ({ items }) => items.map(() => null));
        connection.listen();
        const rootUri = root ? pathToFileURL(root).href : null;
        const ended = client.exit.then((code) => Promise.reject(new Error(`the server exited with ${code} before it answered: ${client.log}`)));
        const greeting = connection.sendRequest("initialize", {
            processId: process.pid,
            rootUri,
            workspaceFolders: rootUri && [{ uri: rootUri, name: "root" }],
            capabilities: CAPABILITIES,
            initializationOptions: options,
        });
        // The second one is not awaited. After an exit the reason is the exit, not the broken pipe.
        ended.catch(() => undefined);
        client.server = await Promise.race([greeting.catch(() => ended), ended]);
        await connection.sendNotification("initialized", {});
        return client;
    }

    ask(method, parameters) {
        return this.connection.sendRequest(method, parameters);
    }

    tell(method, parameters) {
        return this.connection.sendNotification(method, parameters);
    }

    /** Opens a text under a path, which may not exist, and returns its URI. */
    async open(path, text, languageId = path.endsWith(".json") ? "json" : "yaml") {
        const uri = pathToFileURL(path).href;
        this.diagnostics.delete(uri);
        this.versions.delete(uri);
        await this.tell("textDocument/didOpen", { textDocument: { uri, languageId, version: 1, text } });
        return uri;
    }

    /** Replaces the whole text. */
    async change(uri, version, text) {
        await this.tell("textDocument/didChange", { textDocument: { uri, version }, contentChanges: [{ text }] });
    }

    /** The findings of a document, once they are published for this version [default: any version]. */
    async findings(uri, version) {
        const what = () => `the server publishes nothing about ${uri}${version ? ` in version ${version}` : ""}\n${this.log.slice(-2000)}`;
        await until(what, () => this.diagnostics.has(uri) && (version === undefined || this.versions.get(uri) === version));
        return this.diagnostics.get(uri);
    }

    /** Sends a request about a position; lines and characters count from 0. */
    at(method, uri, line, character, more = {}) {
        return this.ask(method, { textDocument: { uri }, position: { line, character }, ...more });
    }

    /** Shuts the server down, and returns the exit code. */
    async stop() {
        await this.ask("shutdown");
        await this.tell("exit");
        const code = await this.exit;
        this.connection.dispose();
        return code;
    }
}
