// A connection to the worker: requests, notifications, and a new worker after a failure.

import type { Message } from "./protocol";

type Listener = (parameters: never) => void;

export class Server {
    private readonly pending = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
    private readonly listeners = new Map<string, Listener>();
    private next = 0;

    private constructor(
        private readonly worker: Worker,
        readonly capabilities: { semanticTokensProvider: { legend: { tokenTypes: string[]; tokenModifiers: string[] } }; completionProvider: { triggerCharacters: string[] } },
    ) {}

    /** Starts a worker with the module, and the session. */
    static async start(wasm: WebAssembly.Module, options: object): Promise<Server> {
        const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "jobc" });
        worker.postMessage({ wasm });
        const server = new Server(worker, {} as Server["capabilities"]);
        worker.onmessage = ({ data }: MessageEvent<Message>) => server.receive(data);
        worker.onerror = ({ message }) => server.receive({ method: "jobc/stopped", params: { reason: message } });
        const { capabilities } = await server.ask<{ capabilities: Server["capabilities"] }>("initialize", {
            processId: null,
            rootUri: null,
            capabilities: CAPABILITIES,
            initializationOptions: options,
        });
        Object.assign(server.capabilities, capabilities);
        server.tell("initialized", {});
        return server;
    }

    ask<R>(method: string, params: unknown, cancelled?: { onCancellationRequested(listener: () => void): unknown }): Promise<R> {
        const id = ++this.next;
        const answer = new Promise<R>((resolve, reject) => this.pending.set(id, { resolve, reject }));
        this.worker.postMessage({ jsonrpc: "2.0", id, method, params });
        cancelled?.onCancellationRequested(() => this.pending.has(id) && this.tell("$/cancelRequest", { id }));
        return answer;
    }

    tell(method: string, params: unknown): void {
        this.worker.postMessage({ jsonrpc: "2.0", method, params });
    }

    on<P>(method: string, listener: (parameters: P) => void): void {
        this.listeners.set(method, listener as Listener);
    }

    stop(): void {
        this.worker.terminate();
        for (const { reject } of this.pending.values()) {
            reject(new Error("the server has stopped"));
        }
        this.pending.clear();
    }

    private receive(message: Message): void {
        if (message.method !== undefined) {
            this.listeners.get(message.method)?.(message.params as never);
            return;
        }
        const waiting = this.pending.get(message.id as number);
        this.pending.delete(message.id as number);
        if (message.error !== undefined) {
            waiting?.reject(new Error(message.error.message));
        } else {
            waiting?.resolve(message.result as never);
        }
    }
}

const CAPABILITIES = {
    general: { positionEncodings: ["utf-16"] },
    textDocument: {
        publishDiagnostics: { relatedInformation: true, codeDescriptionSupport: true, dataSupport: true, versionSupport: true },
        codeAction: {
            codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "refactor.extract", "source.fixAll"] } },
            isPreferredSupport: true,
            dataSupport: true,
        },
        completion: {
            completionItem: { snippetSupport: true, documentationFormat: ["markdown"], insertReplaceSupport: true, insertTextModeSupport: { valueSet: [1, 2] } },
            contextSupport: true,
        },
        hover: { contentFormat: ["markdown"] },
    },
};
