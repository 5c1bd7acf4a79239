// A question before something ends, short messages, and the keys.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { useKeys } from "./use";
import { Value, useValue } from "./value";

interface Question {
    title: string;
    text: ComponentChildren;
    action: string;
    danger: boolean;
    answer(yes: boolean): void;
}

const question = new Value<Question | null>(null);

/** Asks the user; whether they agree. */
export function confirm(title: string, text: ComponentChildren, action: string, danger = true): Promise<boolean> {
    return new Promise((resolve) => question.set({ title, text, action, danger, answer: resolve }));
}

export function Confirmation() {
    const asked = useValue(question);
    const dialog = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        if (asked !== null) {
            dialog.current?.showModal();
        }
    }, [asked]);
    const answer = (yes: boolean): void => {
        dialog.current?.close();
        question.set(null);
        asked?.answer(yes);
    };
    return (
        <dialog ref={dialog} aria-labelledby="question" onCancel={(event) => { event.preventDefault(); answer(false); }}>
            {asked && (
                <>
                    <h2 id="question">{asked.title}</h2>
                    <div>{asked.text}</div>
                    <div class="actions">
                        <button type="button" onClick={() => answer(false)}>Cancel</button>
                        <button type="button" autofocus class={asked.danger ? "primary danger" : "primary"} onClick={() => answer(true)}>{asked.action}</button>
                    </div>
                </>
            )}
        </dialog>
    );
}

const KEYS = [
    ["/", "filter or search"],
    ["j k", "next and previous row"],
    ["Enter", "open"],
    ["s", "stop, after a question"],
    ["n", "new job"],
    ["g", "all jobs"],
    ["f", "follow the log"],
    ["?", "these keys"],
] as const;

const helped = new Value(false);

export function Help() {
    const isOpen = useValue(helped);
    const dialog = useRef<HTMLDialogElement>(null);
    useKeys((key) => {
        if (key === "?") {
            helped.set(true);
            return true;
        }
        return false;
    });
    useEffect(() => {
        if (isOpen) {
            dialog.current?.showModal();
        }
    }, [isOpen]);
    return (
        <dialog ref={dialog} aria-labelledby="keys" onClose={() => helped.set(false)}>
            <h2 id="keys">Keys</h2>
            <dl class="keys">
                {KEYS.map(([key, what]) => (
                    <div key={key}><dt>{key.split(" ").map((it) => <kbd key={it}>{it}</kbd>)}</dt><dd>{what}</dd></div>
                ))}
            </dl>
            <div class="actions"><button type="button" autofocus onClick={() => dialog.current?.close()}>Close</button></div>
        </dialog>
    );
}

interface Toast {
    id: number;
    text: string;
    isProblem: boolean;
}

const toasts = new Value<Toast[]>([]);
let nextToast = 0;
const STAYS = 8000;

/** Says something for some seconds. */
export function say(text: string, isProblem = false): void {
    const id = ++nextToast;
    toasts.set([...toasts.current.slice(-3), { id, text, isProblem }]);
    setTimeout(() => toasts.set(toasts.current.filter((it) => it.id !== id)), STAYS);
}

export function Toasts() {
    return (
        <div class="toasts" role="status">
            {useValue(toasts).map(({ id, text, isProblem }) => <p key={id} class={isProblem ? "toast problem" : "toast"}>{text}</p>)}
        </div>
    );
}
