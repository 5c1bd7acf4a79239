// Hooks: time, width, and documents that are read again.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Problem, epoch, get } from "./api";
import { useValue } from "./value";

/** The time now, again after each period; not while the page is hidden. */
export function useNow(period: number | null): number {
    const [now, set] = useState(Date.now());
    useEffect(() => {
        if (period === null) {
            return undefined;
        }
        set(Date.now());
        const timer = setInterval(() => !document.hidden && set(Date.now()), period);
        return () => clearInterval(timer);
    }, [period]);
    return now;
}

/** The width of an element. */
export function useWidth<E extends HTMLElement>(): [(element: E | null) => void, number] {
    const [element, setElement] = useState<E | null>(null);
    const [width, setWidth] = useState(innerWidth);
    useLayoutEffect(() => {
        if (element === null) {
            return undefined;
        }
        const observer = new ResizeObserver(() => setWidth(element.clientWidth));
        observer.observe(element);
        setWidth(element.clientWidth);
        return () => observer.disconnect();
    }, [element]);
    return [setElement, width];
}

export interface Loaded<T> {
    data: T | undefined;
    problem: Problem | undefined;
    again(): void;
}

/** A document of the API; null loads nothing. It is read again after each period, and when the server is back. */
export function useDocument<T>(where: string | null, period: number | null = null): Loaded<T> {
    const [state, set] = useState<{ where: string | null; data?: T; problem?: Problem }>({ where: null });
    const [turn, setTurn] = useState(0);
    const back = useValue(epoch);
    const text = useRef("");
    useEffect(() => {
        if (where === null) {
            return undefined;
        }
        const controller = new AbortController();
        const load = async (): Promise<void> => {
            try {
                const data = await get<T>(where, controller.signal);
                const now = where + JSON.stringify(data);
                // The same again is not drawn again.
                if (now !== text.current) {
                    text.current = now;
                    set({ where, data });
                }
            } catch (error) {
                if (error instanceof Problem && error.status !== 0 && !controller.signal.aborted) {
                    text.current = "";
                    set({ where, problem: error });
                }
            }
        };
        void load();
        const timer = period === null ? undefined : setInterval(() => !document.hidden && void load(), period);
        return () => {
            controller.abort();
            clearInterval(timer);
        };
    }, [where, period, turn, back]);
    const isHere = state.where === where;
    return { data: isHere ? state.data : undefined, problem: isHere ? state.problem : undefined, again: () => setTurn((it) => it + 1) };
}

/** Calls the function for keys that are not typed into a field. */
export function useKeys(listener: (key: string, event: KeyboardEvent) => boolean | void): void {
    const current = useRef(listener);
    current.current = listener;
    useEffect(() => {
        const listen = (event: KeyboardEvent): void => {
            const target = event.target as HTMLElement;
            const isTyped = target.matches?.("input, textarea, select, [contenteditable], .xterm *, .monaco-editor *");
            if (isTyped || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) {
                return;
            }
            if (current.current(event.key, event) === true) {
                event.preventDefault();
            }
        };
        addEventListener("keydown", listen);
        return () => removeEventListener("keydown", listen);
    }, []);
}

/** The title of the window. */
export function useTitle(title: string): void {
    useEffect(() => {
        document.title = title === "" ? "jobc" : `${title} · jobc`;
    }, [title]);
}
