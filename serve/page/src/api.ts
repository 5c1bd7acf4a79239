// Requests to the server, and what is known of the connection and the session.

import type { Diagnostic, Session } from "./types";
import { Value } from "./value";

const ROOT = "/api/v1";

/** An answer that is no success: a problem document, or none at all. */
export class Problem extends Error {
    constructor(
        readonly status: number,
        readonly title: string,
        readonly detail = "",
        readonly hints: string[] = [],
        readonly diagnostics: Diagnostic[] = [],
    ) {
        super(detail ? `${title}: ${detail}` : title);
    }
}

/** Undefined before the first answer, null without a session. */
export const session = new Value<Session | null | undefined>(undefined);
/** When the server stopped answering. */
export const lostSince = new Value<number | null>(null);
/** Grows whenever the server is there again. */
export const epoch = new Value(0);

const FIRST_PAUSE = 500;
const MAX_PAUSE = 5000;

let probing = false;

/** Notes that the server did not answer, and asks again until it does. */
export function lost(): void {
    if (lostSince.current === null) {
        lostSince.set(Date.now());
    }
    if (!probing) {
        probing = true;
        void probe(FIRST_PAUSE);
    }
}

async function probe(pause: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pause));
    try {
        const response = await fetch(`${ROOT}/session`, { signal: AbortSignal.timeout(5000) });
        // A proxy whose server is gone answers in its place.
        if (response.status >= 502 && response.status <= 504) {
            throw new Error("gone");
        }
        probing = false;
        if (response.status === 401) {
            session.set(null);
        }
        lostSince.set(null);
        epoch.set(epoch.current + 1);
    } catch {
        void probe(Math.min(pause * 1.6, MAX_PAUSE));
    }
}

/** Asks at once, for the user who presses the button. */
export function path(...parts: string[]): string {
    return `/${parts.map(encodeURIComponent).join("/")}`;
}

export async function send(method: string, where: string, body?: unknown, more: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
    const raw = body instanceof Blob || body instanceof ArrayBuffer;
    const headers: Record<string, string> = { ...more.headers };
    if (method !== "GET") {
        headers["X-Jobc-Request"] = "1";
    }
    if (body !== undefined) {
        headers["Content-Type"] = raw ? "application/octet-stream" : "application/json";
    }
    let response: Response;
    try {
        response = await fetch(ROOT + where, { method, headers, ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }), ...(more.signal && { signal: more.signal }) });
    } catch (error) {
        if ((error as Error).name === "AbortError") {
            throw error;
        }
        lost();
        throw new Problem(0, "the server does not answer", "it has ended, or the connection is gone");
    }
    if (response.ok) {
        return response;
    }
    if (response.status >= 502 && response.status <= 504) {
        lost();
    }
    if (response.status === 401) {
        session.set(null);
    }
    const text = await response.text();
    let found: { title?: string; detail?: string; hints?: string[]; diagnostics?: Diagnostic[] } = {};
    try {
        found = JSON.parse(text) as typeof found;
    } catch {
        // A proxy's own page.
    }
    throw new Problem(response.status, found.title ?? `status ${response.status}`, found.detail ?? "", found.hints, found.diagnostics);
}

export async function get<T>(where: string, signal?: AbortSignal): Promise<T> {
    return (await (await send("GET", where, undefined, signal ? { signal } : {})).json()) as T;
}

export async function post<T>(where: string, body: unknown = {}, more: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<T> {
    const text = await (await send("POST", where, body, more)).text();
    return (text === "" ? {} : JSON.parse(text)) as T;
}

/** Begins a session with the token of the address, which then leaves the address; or goes on with that of the cookie. */
export async function start(): Promise<void> {
    const token = /^#token=([\w.~+/=-]+)$/.exec(location.hash)?.[1];
    if (token !== undefined) {
        history.replaceState(null, "", location.pathname + location.search);
        await begin(token).catch(() => undefined);
    }
    await resume();
}

/** Begins a session with a token. */
export async function begin(token: string): Promise<void> {
    await send("POST", "/session", { token });
}

export async function resume(): Promise<void> {
    try {
        session.set(await get<Session>("/session"));
    } catch (error) {
        if (session.current === undefined && (error as Problem).status !== 401) {
            // Until the server answers, the page says that it does not.
            const stop = epoch.watch(() => {
                stop();
                void resume();
            });
        }
    }
}

export async function leave(): Promise<void> {
    await send("DELETE", "/session").catch(() => undefined);
    session.set(null);
}

/** The address of a WebSocket. */
export function socketAddress(where: string): string {
    const address = new URL(ROOT + where, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    return address.href;
}

export const apiAddress = (where: string): string => ROOT + where;
