// The language server over a socket, connected again when it was cut.

import { registerFeatures } from "../../../../editors/web/src/editor/features";
import { JSON as JSON_MODE, YAML, registerLanguages } from "../../../../editors/web/src/editor/languages";
import { followColors, useWorker } from "../../../../editors/web/src/editor/monaco";
import type { Diagnostic, Message } from "../../../../editors/web/src/editor/protocol";
import { Server, type Channel } from "../../../../editors/web/src/editor/server";

import { epoch, socketAddress } from "../api";

declare const EDITOR_WORKER: string;

export interface Document {
    uri: string;
    text: string;
    version: number;
}

/** What the session is told again after each connection. */
export interface Client {
    document(): Document | undefined;
    files(): Record<string, string | boolean>;
    target(): string;
    /** The upload that has the files beside the job; empty without. */
    upload(): string;
    onDiagnostics(diagnostics: Diagnostic[]): void;
    onConnection(isConnected: boolean): void;
}

const PAUSE = 1000;
const MAX_PAUSE = 10_000;

/** Refuses all requests while the language server is not connected. */
const DISCONNECTED = { ask: () => Promise.reject(new Error("the language server is not connected")), tell: () => undefined } as unknown as Server;

let server: Server = DISCONNECTED;
let client: Client | undefined;
let isStarted = false;
let hasFeatures = false;
let pause = PAUSE;
let socket: WebSocket | undefined;
let last: Diagnostic[] = [];

export const language = (): Server => server;

/** Connects for a client, or hands the connection that there is to it. */
export function attach(to: Client): () => void {
    client = to;
    if (!isStarted) {
        isStarted = true;
        useWorker(new URL(EDITOR_WORKER, location.href));
        registerLanguages();
        followColors();
        epoch.watch(() => server === DISCONNECTED && connect());
        connect();
    } else if (server !== DISCONNECTED) {
        greet();
    } else {
        connect();
    }
    return () => {
        const document = to.document();
        if (document !== undefined) {
            server.tell("textDocument/didClose", { textDocument: { uri: document.uri } });
        }
        if (client === to) {
            client = undefined;
        }
    };
}

/** Tells the server what the client has. */
function greet(): void {
    const document = client?.document();
    if (client === undefined) {
        return;
    }
    server.tell("workspace/didChangeConfiguration", { settings: { jobc: { target: client.target() } } });
    server.tell("jobc/files", client.files());
    if (document !== undefined) {
        server.tell("textDocument/didOpen", { textDocument: { uri: document.uri, languageId: YAML, version: document.version, text: document.text } });
    }
    client.onConnection(true);
}

/** Connects again at once: a session has one upload. */
export function reconnect(): void {
    if (!isStarted) {
        return;
    }
    const before = socket;
    socket = undefined;
    if (server !== DISCONNECTED) {
        server.stop();
        server = DISCONNECTED;
    }
    before?.close();
    connect();
}

function connect(): void {
    if (socket !== undefined) {
        return;
    }
    const upload = client?.upload() ?? "";
    const made = new WebSocket(socketAddress(upload === "" ? "/language" : `/language?${new URLSearchParams({ upload })}`));
    socket = made;
    const channel: Channel = {
        send: (message) => made.readyState === WebSocket.OPEN && made.send(JSON.stringify(message)),
        close: () => made.close(),
        onMessage: () => undefined,
    };
    made.onmessage = ({ data }: MessageEvent<string>) => channel.onMessage(JSON.parse(data) as Message);
    made.onopen = async () => {
        const started = await Server.start(channel, { emptyEnvironment: true }).catch(() => undefined);
        if (started === undefined || socket !== made) {
            return;
        }
        pause = PAUSE;
        server = started;
        server.on<{ uri: string; diagnostics: Diagnostic[] }>("textDocument/publishDiagnostics", ({ uri, diagnostics }) => {
            if (uri === client?.document()?.uri) {
                last = diagnostics;
                client.onDiagnostics(diagnostics);
            }
        });
        if (!hasFeatures) {
            hasFeatures = true;
            registerFeatures([YAML, JSON_MODE], { server: language, findings: () => last }, server.capabilities);
        }
        greet();
    };
    made.onclose = () => {
        if (socket !== made) {
            return;
        }
        socket = undefined;
        if (server !== DISCONNECTED) {
            server.stop();
            server = DISCONNECTED;
        }
        client?.onConnection(false);
        // No editor is open that needs it.
        setTimeout(() => client !== undefined && connect(), pause);
        pause = Math.min(pause * 2, MAX_PAUSE);
    };
}
