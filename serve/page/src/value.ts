// Values that several parts of the page watch.

import { useEffect, useState } from "preact/hooks";

/** A value with listeners. */
export class Value<T> {
    private readonly listeners = new Set<() => void>();

    constructor(private now: T) {}

    get current(): T {
        return this.now;
    }

    set(value: T): void {
        if (!Object.is(value, this.now)) {
            this.now = value;
            for (const listener of [...this.listeners]) {
                listener();
            }
        }
    }

    watch(listener: () => void): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }
}

/** Draws a component again when the value changes. */
export function useValue<T>(value: Value<T>): T {
    const [, draw] = useState(0);
    useEffect(() => value.watch(() => draw((it) => it + 1)), [value]);
    return value.current;
}
