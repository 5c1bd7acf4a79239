// The language server in a worker. Its client is the playground or VS Code for the Web: the first message is the module
// of WebAssembly, every other one a message of JSON-RPC. Three notifications are not the protocol's: `jobc/files` gives
// files beside the jobs, `jobc/wanted` asks for some, `jobc/stopped` says that the server has failed.

import type { Entry, Message } from "./editor/protocol";

interface Exports {
    memory: WebAssembly.Memory;
    jobc_input(length: number): number;
    jobc_receive(): number;
    jobc_files(): number;
    jobc_work(): number;
    jobc_output(): number;
    jobc_output_length(): number;
}

interface Reply {
    messages: Message[];
    wanted: string[];
    pause: number | null;
}

const worker = self as unknown as { postMessage(message: unknown): void; onmessage: (event: MessageEvent) => void };
const encoder = new TextEncoder();
const decoder = new TextDecoder();

let server: Exports | undefined;
let failure: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

worker.onmessage = ({ data }: MessageEvent<Message | { wasm: WebAssembly.Module | ArrayBuffer }>) => {
    if ("wasm" in data) {
        const module = data.wasm instanceof WebAssembly.Module ? data.wasm : new WebAssembly.Module(data.wasm);
        const instance = new WebAssembly.Instance(module, { host: { now: () => performance.now() } });
        server = instance.exports as unknown as Exports;
    } else if (failure !== undefined) {
        refuse(data);
    } else {
        guarded((server) => receive(server, data));
        // In a task of its own, after all messages that are here already: a cancelled request is never started.
        schedule(0);
    }
};

function receive(server: Exports, message: Message): void {
    if (message.method === "jobc/files") {
        give(server, message.params as Record<string, Entry>);
        server.jobc_files();
    } else {
        give(server, message);
        server.jobc_receive();
    }
}

function give(server: Exports, value: unknown): void {
    const bytes = encoder.encode(JSON.stringify(value));
    const address = server.jobc_input(bytes.length);
    new Uint8Array(server.memory.buffer, address, bytes.length).set(bytes);
}

function schedule(milliseconds: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => guarded(work), milliseconds);
}

function work(server: Exports): void {
    const length = server.jobc_work();
    const { messages, wanted, pause } = JSON.parse(output(server, length)) as Reply;
    for (const message of messages) {
        worker.postMessage({ jsonrpc: "2.0", ...message });
    }
    if (wanted.length > 0) {
        worker.postMessage({ jsonrpc: "2.0", method: "jobc/wanted", params: { paths: wanted } });
    }
    if (pause !== null) {
        schedule(pause);
    }
}

function output(server: Exports, length: number): string {
    return decoder.decode(new Uint8Array(server.memory.buffer, server.jobc_output(), length));
}

/** Calls into the module. After a trap its state is not to be trusted: it is not called again. */
function guarded(call: (server: Exports) => void): void {
    if (server === undefined || failure !== undefined) {
        return;
    }
    try {
        call(server);
    } catch (error) {
        const trapped = error instanceof WebAssembly.RuntimeError;
        failure = (trapped && output(server, server.jobc_output_length())) || String(error);
        worker.postMessage({ jsonrpc: "2.0", method: "jobc/stopped", params: { reason: failure } });
    }
}

/** Answers a request to a server that has failed. */
function refuse({ id, method }: Message): void {
    if (id !== undefined && method !== undefined) {
        const error = { code: -32603, message: `the server has stopped: ${failure}` };
        worker.postMessage({ jsonrpc: "2.0", id, error });
    }
}
