// Sentences of jobc, in which names are in backticks.

export function Text({ of }: { of: string }) {
    return <>{of.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}
