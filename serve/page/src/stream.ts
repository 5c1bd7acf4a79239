// Event streams that go on where they were after the connection or the server was gone.

import { apiAddress, epoch, lost, session } from "./api";

export interface StreamEvent {
    kind: string;
    data: string;
}

/** How long the page works on events before it lets the browser draw, in milliseconds. */
const SLICE = 8;
/** A stream without a line for so long is dead, in milliseconds: the server sends one every 15 s. */
const SILENCE = 45_000;
/** A line of a stream that is longer is cut, in characters. */
const MAX_DATA = 4_000_000;

export interface Listener {
    /** Some events, in order. */
    events(events: StreamEvent[]): void;
    /** The stream is complete. */
    end?(): void;
    /** What the server answers instead of a stream. */
    fail?(status: number): void;
}

/** Follows a stream until it ends or the function that is returned is called. */
export function follow(where: string, listener: Listener): () => void {
    const stopped = new AbortController();
    let last = "";
    const run = async (): Promise<void> => {
        let pause = 250;
        while (!stopped.signal.aborted) {
            const before = last;
            const outcome = await once();
            if (outcome === "end") {
                listener.end?.();
                return;
            }
            if (typeof outcome === "number") {
                listener.fail?.(outcome);
                return;
            }
            pause = before === last ? Math.min(pause * 2, 5000) : 250;
            await back(pause);
        }
    };
    const once = async (): Promise<"end" | "cut" | number> => {
        const headers: Record<string, string> = { Accept: "text/event-stream" };
        if (last !== "") {
            headers["Last-Event-ID"] = last;
        }
        const silent = new AbortController();
        let timer = setTimeout(() => silent.abort(), SILENCE);
        try {
            const response = await fetch(apiAddress(where), { headers, signal: AbortSignal.any([stopped.signal, silent.signal]), cache: "no-store" });
            if (response.status === 401) {
                session.set(null);
            }
            if (!response.ok || response.body === null) {
                if (response.status >= 500 || response.status === 429) {
                    return "cut";
                }
                return response.status;
            }
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            const parser = new Parser();
            let since = performance.now();
            for (;;) {
                const { done, value } = await reader.read();
                if (done) {
                    break;
                }
                clearTimeout(timer);
                timer = setTimeout(() => silent.abort(), SILENCE);
                const events = parser.read(value);
                last = parser.id || last;
                const end = events.findIndex(({ kind }) => kind === "end");
                const shown = end < 0 ? events : events.slice(0, end);
                if (shown.length > 0) {
                    listener.events(shown);
                }
                if (end >= 0) {
                    return "end";
                }
                if (performance.now() - since > SLICE) {
                    await new Promise((resolve) => setTimeout(resolve, 0));
                    since = performance.now();
                }
            }
        } catch {
            if (!stopped.signal.aborted) {
                lost();
            }
        } finally {
            clearTimeout(timer);
        }
        return "cut";
    };
    /** After a pause, or as soon as the server is there again. */
    const back = (pause: number): Promise<void> =>
        new Promise((resolve) => {
            const done = (): void => {
                clearTimeout(timer);
                unwatch();
                resolve();
            };
            const timer = setTimeout(done, pause);
            const unwatch = epoch.watch(done);
            stopped.signal.addEventListener("abort", done, { once: true });
        });
    void run();
    return () => stopped.abort();
}

/** Reads the format of event streams. */
export class Parser {
    /** The last id. */
    id = "";
    private rest = "";
    private kind = "";
    private data: string[] = [];

    read(text: string): StreamEvent[] {
        const events: StreamEvent[] = [];
        const lines = (this.rest + text).split("\n");
        this.rest = (lines.pop() ?? "").slice(0, MAX_DATA);
        for (const each of lines) {
            const line = each.endsWith("\r") ? each.slice(0, -1) : each;
            if (line === "") {
                if (this.data.length > 0 || this.kind === "end") {
                    events.push({ kind: this.kind || "message", data: this.data.join("\n") });
                }
                this.kind = "";
                this.data = [];
                continue;
            }
            const colon = line.indexOf(":");
            const field = colon < 0 ? line : line.slice(0, colon);
            const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
            if (field === "data") {
                this.data.push(value);
            } else if (field === "event") {
                this.kind = value;
            } else if (field === "id") {
                this.id = value;
            }
        }
        return events;
    }
}

/** The JSON of an event; undefined if it was cut. */
export function parsed<T>({ data }: StreamEvent): T | undefined {
    try {
        return JSON.parse(data) as T;
    } catch {
        return undefined;
    }
}
