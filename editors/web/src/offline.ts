// The service worker: without a network, the page is what this version of it has stored. With one, nothing is from the store.

/** The files of the page, and a name for this version of them; `build.mjs` knows both. */
declare const FILES: string[];
declare const VERSION: string;

interface Waiting extends Event {
    waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Event {
    request: Request;
    respondWith(response: Promise<Response>): void;
}

const worker = self as unknown as { registration: { scope: string } };
/** Another page of this server may have its own playground. */
const PREFIX = `jobc-playground ${worker.registration.scope} `;

addEventListener("install", (event) => {
    (event as Waiting).waitUntil(caches.open(PREFIX + VERSION).then((cache) => cache.addAll(FILES)));
});

addEventListener("activate", (event) => {
    const isOld = (name: string): boolean => name.startsWith(PREFIX) && name !== PREFIX + VERSION;
    (event as Waiting).waitUntil(caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)))));
});

addEventListener("fetch", (event) => {
    const { request, respondWith } = event as Fetching;
    if (request.method === "GET") {
        respondWith.call(event, fetch(request).catch((error: unknown) => stored(request, error)));
    }
});

async function stored(request: Request, error: unknown): Promise<Response> {
    const cache = await caches.open(PREFIX + VERSION);
    const found = await cache.match(request, { ignoreSearch: true });
    if (found === undefined) {
        throw error;
    }
    return found;
}
