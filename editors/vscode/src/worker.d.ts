/** A web worker: the part of the DOM's type that the extension uses. */
declare class Worker {
    constructor(url: string, options?: { name?: string });
    postMessage(message: unknown): void;
    terminate(): void;
}
