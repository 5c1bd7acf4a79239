// The language server in a worker of the page.

import type { Message } from "./editor/protocol";
import type { Channel } from "./editor/server";

/** Starts a worker with the module. */
export function startWorker(wasm: WebAssembly.Module): Channel {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "jobc" });
    const channel: Channel = {
        send: (message) => worker.postMessage(message),
        close: () => worker.terminate(),
        onMessage: () => undefined,
    };
    worker.postMessage({ wasm });
    worker.onmessage = ({ data }: MessageEvent<Message>) => channel.onMessage(data);
    worker.onerror = ({ message }) => channel.onMessage({ method: "jobc/stopped", params: { reason: message } });
    return channel;
}
