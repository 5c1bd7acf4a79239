// The state of a job or a task: a sign, a word and a color.

const KINDS: Record<string, [kind: string, sign: string]> = {
    running: ["active", "●"],
    ready: ["active", "●"],
    created: ["active", "○"],
    creating: ["active", "○"],
    preparing: ["active", "○"],
    retrying: ["waiting", "↻"],
    queued: ["waiting", "◷"],
    pending: ["waiting", "◷"],
    waiting: ["waiting", "◷"],
    suspended: ["waiting", "◷"],
    paused: ["still", "‖"],
    stopping: ["still", "■"],
    stopped: ["still", "■"],
    succeeded: ["fine", "✓"],
    failed: ["bad", "✕"],
    "timed-out": ["bad", "✕"],
    lost: ["bad", "?"],
};

export const STATES = ["running", "queued", "pending", "preparing", "paused", "stopping", "succeeded", "failed", "timed-out", "stopped", "lost"];

const ENDS = new Set(["succeeded", "failed", "timed-out", "stopped", "lost"]);

/** Whether a job has ended. Its `is_complete` is something else: whether it was submitted as a whole. */
export function hasEnded({ state }: { state: string }): boolean {
    return ENDS.has(state);
}

export function kindOf(state: string): string {
    return KINDS[state]?.[0] ?? "still";
}

export function State({ state }: { state: string }) {
    const [kind, sign] = KINDS[state] ?? ["still", "·"];
    return <span class={`state ${kind}`}><span aria-hidden="true">{sign}</span> {state}</span>;
}
