// Addresses of the page: a path, and a query that holds the filters.

import { Value, useValue } from "./value";

export interface Route {
    /** The parts of the path, decoded. */
    parts: string[];
    query: URLSearchParams;
}

function read(): Route {
    const parts = location.pathname.split("/").filter((part) => part !== "");
    return { parts: parts.map((part) => safeDecode(part)), query: new URLSearchParams(location.search) };
}

function safeDecode(part: string): string {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

const route = new Value(read());

export function useRoute(): Route {
    return useValue(route);
}

/** What asks the user before the page is left; returns whether it may be. */
export const guard = new Value<(() => boolean) | null>(null);

export function go(address: string, replace = false): void {
    if (guard.current !== null && !guard.current()) {
        return;
    }
    history[replace ? "replaceState" : "pushState"](null, "", address);
    route.set(read());
    if (!replace) {
        // The next page begins at its top, and a screen reader reads its title.
        scrollTo(0, 0);
        requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
    }
}

/** Changes a part of the query in place. */
export function setQuery(name: string, value: string): void {
    const address = new URL(location.href);
    if (value === "") {
        address.searchParams.delete(name);
    } else {
        address.searchParams.set(name, value);
    }
    history.replaceState(null, "", address.pathname + address.search);
    route.set(read());
}

/** Links of the page change the address without loading it again. */
export function listen(): void {
    addEventListener("popstate", () => route.set(read()));
    document.addEventListener("click", (event) => {
        const link = (event.target as Element).closest?.("a");
        const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && !event.defaultPrevented;
        if (!link || !isPlain || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin || link.pathname.startsWith("/api/")) {
            return;
        }
        event.preventDefault();
        go(link.pathname + link.search);
    });
}

export const jobAddress = (id: string, tab?: string): string => `/jobs/${encodeURIComponent(id)}${tab ? `?tab=${tab}` : ""}`;
