// Tabs as the ARIA practices describe them: one of them is in the order of Tab, arrows and Home and End move among them.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
    label: string;
    tabs: { key: string; label: ComponentChildren }[];
    selected: string;
    onSelect(key: string): void;
    children: ComponentChildren;
}

export function Tabs({ label, tabs, selected, onSelect, children }: Props) {
    const id = useId();
    const list = useRef<HTMLDivElement>(null);
    // Where not all of them fit.
    useEffect(() => {
        const tab = list.current?.querySelector<HTMLElement>('[aria-selected="true"]');
        if (tab && list.current) {
            list.current.scrollLeft = tab.offsetLeft + tab.offsetWidth - list.current.clientWidth;
        }
    }, [selected]);
    const move = (event: KeyboardEvent): void => {
        const at = tabs.findIndex(({ key }) => key === selected);
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
        const tab = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
        if (tab !== undefined) {
            event.preventDefault();
            onSelect(tab.key);
            requestAnimationFrame(() => list.current?.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
        }
    };
    return (
        <div class="tabs">
            <div role="tablist" aria-label={label} ref={list} onKeyDown={move}>
                {tabs.map(({ key, label }) => (
                    <button type="button" role="tab" key={key} id={`${id}-${key}`} data-tab={key} aria-selected={key === selected} aria-controls={`${id}-panel`} tabIndex={key === selected ? 0 : -1} onClick={() => onSelect(key)}>
                        {label}
                    </button>
                ))}
            </div>
            <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`} class="panel">{children}</div>
        </div>
    );
}
