// A choice among the tasks of a job; with very many of them a field, since a list of 10,000 is no choice.

import { useState } from "preact/hooks";

/** The longest list. */
const MAX = 200;

interface Props {
    tasks: string[];
    value: string;
    onChange(task: string): void;
    /** What stands for all of them; without it, one is always chosen. */
    all?: string;
}

export function TaskChoice({ tasks, value, onChange, all }: Props) {
    const [typed, setTyped] = useState(value);
    if (tasks.length <= MAX) {
        return (
            <select aria-label="Task" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
                {all !== undefined && <option value="">{all}</option>}
                {tasks.map((it) => <option key={it} value={it}>{it}</option>)}
            </select>
        );
    }
    const isKnown = typed === "" || tasks.includes(typed);
    return (
        <input
            aria-label={`Task, one of ${tasks.length}`}
            aria-invalid={!isKnown || undefined}
            placeholder={all ?? tasks[0] ?? ""}
            value={typed}
            onInput={({ currentTarget }) => {
                setTyped(currentTarget.value);
                if (currentTarget.value === "" || tasks.includes(currentTarget.value)) {
                    onChange(currentTarget.value);
                }
            }}
        />
    );
}
