//! The order of roles: their needs, cycles, layers, and dependencies that cause deadlocks.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::{GangPlan, NeedPlan};
use jobc_schema::role::{Need, NeedState, Needs};

use super::context::Context;
use super::distributed::Rendezvous;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::suggest;

/// The order of the roles.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The needs of each role, by its index.
    pub(super) needs: Vec<Vec<NeedPlan>>,
    /// The same as indices, with their spans.
    edges: Vec<Vec<Edge>>,
    /// The indices of all roles, each after those that it needs.
    pub(super) order: Vec<usize>,
    /// The names, by layer.
    pub(super) stages: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Edge {
    to: usize,
    state: NeedState,
    at: Pointer,
}

/// Resolves the needs of every role, and sorts the roles.
pub(super) fn resolve_graph(context: &Context<'_>, sink: &mut Sink) -> Graph {
    let mut graph = Graph::default();
    for (number, name) in context.job.roles.keys().enumerate() {
        let (plans, edges) = resolve_needs(context, number, name, sink);
        graph.needs.push(plans);
        graph.edges.push(edges);
    }
    put_in_order(context, &mut graph, sink);
    graph
}

impl Graph {
    /// The roles whose tasks have all ended when this role starts, given those of the roles that it needs.
    pub(super) fn finished_before(&self, number: usize) -> impl Iterator<Item = (usize, u32)> {
        let edges = self.edges[number].iter().zip(&self.needs[number]);
        edges.filter(|(edge, _)| edge.state == NeedState::Succeeded).map(|(edge, plan)| (edge.to, plan.min))
    }
}

fn resolve_needs(
    context: &Context<'_>,
    number: usize,
    name: &str,
    sink: &mut Sink,
) -> (Vec<NeedPlan>, Vec<Edge>) {
    let root = Pointer::ROOT.keys(["roles", name, "needs"]);
    let wanted: Vec<(&str, Need, Pointer)> = match &context.job.roles[number].needs {
        None => vec![],
        Some(Needs::Names(names)) => {
            let state = Need::State(NeedState::Succeeded);
            names.iter().enumerate().map(|(i, other)| (other.as_str(), state, root.index(i))).collect()
        }
        Some(Needs::States(states)) => {
            states.iter().map(|(other, need)| (other.as_str(), *need, root.key(other))).collect()
        }
    };
    let mut found: IndexMap<usize, (NeedPlan, Edge)> = IndexMap::new();
    let own = context.variant.groups.declared(name);
    for (other, need, at) in wanted {
        if other == own {
            sink.push(
                Diagnostic::error(codes::NEED_CYCLE, format!("role `{own}` needs itself"))
                    .at_key(&at, "")
                    .note("a role cannot wait for itself; remove the line"),
            );
            continue;
        }
        // A single combination cannot be named in a job file: its number changes with the matrix.
        if !context.table.contains_key(other) && context.variant.groups.of_role(other).is_none()
            || context.variant.groups.get(other).is_some()
        {
            sink.push(unknown_role(context, other, &at));
            continue;
        }
        for member in context.roles_called(other) {
            let Some((to, _, facts)) = context.table.get_full(member) else { continue };
            let (state, min) = match need {
                Need::State(state) => (state, facts.instances),
                Need::Min(min) => (min.state, min.min.unwrap_or(facts.instances)),
            };
            if min > facts.instances {
                let message = format!(
                    "`{name}` waits for {min} instances of `{member}`, which has {}",
                    facts.instances
                );
                sink.push(
                    Diagnostic::error(codes::NEED_MIN, message)
                        .at(&at.key("min"), "")
                        .note("leave `min` out to wait for all"),
                );
            }
            if state == NeedState::Ready && context.job.roles[to].ready.is_none() {
                sink.push(
                    Diagnostic::error(codes::NEED_READY, format!("`{other}` has no `ready`"))
                        .at_key(&at, format!("`{name}` waits until it is"))
                        .at_key(&Pointer::ROOT.keys(["roles", member]), "give this role a `ready`")
                        .note("as in `ready: {port: http}`; or wait for `started`"),
                );
            }
            let plan = NeedPlan { role: member.to_owned(), state, min };
            found.entry(to).or_insert((plan, Edge { to, state, at: at.clone() }));
        }
    }
    found.into_values().unzip()
}

/// Reports a need of an undefined role.
fn unknown_role(context: &Context<'_>, name: &str, at: &Pointer) -> Diagnostic {
    let diagnostic = Diagnostic::error(codes::NEED_UNKNOWN, format!("unknown role `{name}`"));
    if let Some(group) = context.variant.groups.get(name) {
        let role = &group.role;
        return diagnostic
            .meant_key(at, role)
            .note(format!("`{role}` means all of its combinations; one of them cannot be named"));
    }
    let near = suggest::nearest(name, context.declared_roles());
    match near.or_else(|| suggest::similar(name, context.declared_roles())) {
        Some(near) => diagnostic.meant_key(at, near),
        None => diagnostic
            .at_key(at, "")
            .note(format!("the roles are {}", suggest::list(context.declared_roles()))),
    }
}

/// Kahn's algorithm: a role is placed after all its needs; the remaining roles contain cycles.
fn put_in_order(context: &Context<'_>, graph: &mut Graph, sink: &mut Sink) {
    let count = graph.edges.len();
    let mut waiting: Vec<usize> = graph.edges.iter().map(Vec::len).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![vec![]; count];
    for (number, edges) in graph.edges.iter().enumerate() {
        for edge in edges {
            needed_by[edge.to].push(number);
        }
    }
    let mut layer: Vec<usize> = (0..count).filter(|&number| waiting[number] == 0).collect();
    while !layer.is_empty() {
        let mut next = Vec::new();
        for &number in &layer {
            for &other in &needed_by[number] {
                waiting[other] -= 1;
                if waiting[other] == 0 {
                    next.push(other);
                }
            }
        }
        let name =
            |&number: &usize| context.table.get_index(number).map_or_else(String::new, |(n, _)| n.clone());
        graph.stages.push(layer.iter().map(name).collect());
        graph.order.append(&mut layer);
        next.sort_unstable();
        layer = next;
    }
    if graph.order.len() < count {
        report_cycles(context, graph, &waiting, sink);
        graph.order.extend((0..count).filter(|&number| waiting[number] > 0));
    }
}

/// Finds a cycle: every remaining role needs another remaining role, so following the needs leads around.
fn report_cycles(context: &Context<'_>, graph: &Graph, waiting: &[usize], sink: &mut Sink) {
    let mut seen = vec![0_usize; waiting.len()];
    let name = |number: usize| context.table.get_index(number).map_or("", |(name, _)| name.as_str());
    for start in (0..waiting.len()).filter(|&number| waiting[number] > 0) {
        let mut walk: Vec<(usize, &Edge)> = Vec::new();
        let mut at = start;
        while seen[at] == 0 {
            seen[at] = start + 1;
            let Some(edge) = graph.edges[at].iter().find(|edge| waiting[edge.to] > 0) else { break };
            walk.push((at, edge));
            at = edge.to;
        }
        let Some(from) = walk.iter().position(|(number, _)| *number == at) else { continue };
        let cycle = &walk[from..];
        let mut names: Vec<&str> = cycle.iter().map(|(number, _)| name(*number)).collect();
        names.push(names[0]);
        let mut diagnostic = Diagnostic::error(
            codes::NEED_CYCLE,
            format!("dependency cycle between roles: {}", names.join(" -> ")),
        );
        for (number, edge) in cycle.iter().take(8) {
            diagnostic =
                diagnostic.at_key(&edge.at, format!("`{}` needs `{}`", name(*number), name(edge.to)));
        }
        diagnostic = diagnostic.note("none of them could ever start; remove one of these needs");
        // Roles are usually written in the order in which they run, so the need that points backward is the mistake.
        let mut back = cycle.iter().filter(|(number, edge)| edge.to > *number);
        if let (Some((number, edge)), None) = (back.next(), back.next()) {
            let needs = Pointer::ROOT.keys(["roles", name(*number), "needs"]);
            let only = graph.edges[*number].len() == 1;
            diagnostic = diagnostic.remove(if only { &needs } else { &edge.at });
        }
        sink.push(diagnostic);
    }
}

/// Reports needs that prevent the members of a rendezvous from meeting.
///
/// All members must run at once. One that needs another to *succeed*, directly or through other roles, waits
/// forever; a gang that starts together cannot wait for its members.
pub(super) fn report_deadlocks(
    context: &Context<'_>,
    graph: &Graph,
    rendezvous: &Rendezvous,
    gang: GangPlan,
    sink: &mut Sink,
) {
    let count = graph.edges.len();
    let mut member = vec![false; count];
    for plan in &rendezvous.plan.members {
        // An evaluator does not communicate with the others, so it can start last.
        if let Some(number) =
            context.table.get_index_of(&plan.role).filter(|_| plan.part != MemberPart::Evaluator)
        {
            member[number] = true;
        }
    }
    let together = matches!(gang, GangPlan::Required | GangPlan::Min(_));
    let name = |number: usize| context.table.get_index(number).map_or("", |(name, _)| name.as_str());
    // Follow the needs of all members; `from` is the member from which a role was reached.
    let mut from: Vec<Option<usize>> = (0..count).map(|number| member[number].then_some(number)).collect();
    let mut open: Vec<usize> = (0..count).filter(|&number| member[number]).collect();
    while let Some(number) = open.pop() {
        for edge in &graph.edges[number] {
            let Some(first) = from[number] else { continue };
            if member[edge.to] && (together || edge.state == NeedState::Succeeded) {
                let why = match edge.state {
                    NeedState::Succeeded => "has ended",
                    NeedState::Ready => "is ready",
                    NeedState::Started => "has started",
                };
                let message = format!(
                    "`{}` and `{}` must run at the same time, but one waits for the other",
                    name(first),
                    name(edge.to)
                );
                let mut diagnostic = Diagnostic::error(codes::DEADLOCK, message)
                    .at_key(&edge.at, format!("`{}` waits until `{}` {why}", name(number), name(edge.to)))
                    .at_key(&Pointer::ROOT.key("distributed"), "both take part in this");
                if edge.state != NeedState::Succeeded {
                    diagnostic =
                        diagnostic.at_key(&Pointer::ROOT.key("gang"), "all start together or not at all");
                }
                sink.push(diagnostic.note("remove this need, or take one of the roles out of `distributed`"));
            } else if from[edge.to].is_none() {
                from[edge.to] = Some(first);
                open.push(edge.to);
            }
        }
    }
    for plan in rendezvous.plan.members.iter().filter(|m| m.part != MemberPart::Evaluator) {
        let Some((role, facts)) = context.role(&plan.role) else { continue };
        if let Some(parallel) = role.parallel.filter(|&n| n < facts.instances) {
            sink.push(
                Diagnostic::error(
                    codes::DEADLOCK,
                    format!(
                        "the {} instances of `{}` must run at the same time, but only {parallel} may",
                        facts.instances, plan.role
                    ),
                )
                .at(&Pointer::ROOT.keys(["roles", &plan.role, "parallel"]), "")
                .at_key(&Pointer::ROOT.key("distributed"), "all of them take part in this")
                .note("remove `parallel`"),
            );
        }
    }
}
