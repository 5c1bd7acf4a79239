// A connection to the language server: requests and notifications, over a worker or a socket.

import type { Message } from "./protocol";

type Listener = (parameters: never) => void;

/** What carries messages to the language server and back. */
export interface Channel {
    send(message: Message): void;
    close(): void;
    /** Set by the connection. */
    onMessage: (message: Message) => void;
}

/** What answers requests: the language server, or a stand-in for some of them. */
export type Compiler = Pick<Server, "ask">;

export class Server {
    private readonly pending = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
    private readonly listeners = new Map<string, Listener>();
    private next = 0;

    private constructor(
        private readonly channel: Channel,
        readonly capabilities: { semanticTokensProvider: { legend: { tokenTypes: string[]; tokenModifiers: string[] } }; completionProvider: { triggerCharacters: string[] } },
    ) {}

    /** Starts the session. */
    static async start(channel: Channel, options: object): Promise<Server> {
        const server = new Server(channel, {} as Server["capabilities"]);
        channel.onMessage = (message) => server.receive(message);
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
        this.channel.send({ jsonrpc: "2.0", id, method, params });
        cancelled?.onCancellationRequested(() => this.pending.has(id) && this.tell("$/cancelRequest", { id }));
        return answer;
    }

    tell(method: string, params: unknown): void {
        this.channel.send({ jsonrpc: "2.0", method, params });
    }

    on<P>(method: string, listener: (parameters: P) => void): void {
        this.listeners.set(method, listener as Listener);
    }

    stop(): void {
        this.channel.close();
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
