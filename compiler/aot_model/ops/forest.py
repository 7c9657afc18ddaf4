"""The nodes of decision trees as tables, and that a walk through them ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aot_model.ir.operator import Operator, OperatorError

LEAF = "LEAF"
COMPARE = {
    "BRANCH_LEQ": "<=",
    "BRANCH_LT": "<",
    "BRANCH_GTE": ">=",
    "BRANCH_GT": ">",
    "BRANCH_EQ": "==",
    "BRANCH_NEQ": "!=",
}


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees. `leaf` is the range of votes of a leaf, (0, 0) for a branch; children of a leaf are
    0.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    yes: tuple[int, ...]
    no: tuple[int, ...]
    mode: tuple[str, ...]
    missing: tuple[int, ...]
    roots: tuple[int, ...]
    votes: tuple[tuple[int, ...], ...]
    """Of each node: places in target and weight."""
    target: tuple[int, ...]
    weight: tuple[float, ...]

    def __post_init__(self) -> None:
        votes = sum(len(v) for v in self.votes)
        if not votes == len(self.target) == len(self.weight):
            raise OperatorError("the lists of votes have different lengths")
        for flag in self.missing:
            if flag not in (0, 1):
                raise OperatorError(f"nodes_missing_value_tracks_true has {flag}; it is 0 or 1")


def sorted_forest(forest: Forest) -> Forest:
    """The same trees with each node behind those that lead to it. Children of a leaf, which nothing reads,
    are the node after it.
    """
    order: list[int] = []
    done: set[int] = set()
    for start in range(len(forest.mode)):
        stack = [(start, False)]
        while stack:
            k, finished = stack.pop()
            if finished:
                order.append(k)
            elif k not in done:
                done.add(k)
                stack.append((k, True))
                if forest.mode[k] != LEAF:
                    stack += [(c, False) for c in (forest.yes[k], forest.no[k]) if c not in done]
    order.reverse()
    place = {old: new for new, old in enumerate(order)}
    last = len(order) - 1

    def children(of: Sequence[int]) -> tuple[int, ...]:
        return tuple(place[of[k]] if forest.mode[k] != LEAF else min(place[k] + 1, last) for k in order)

    return replace(
        forest,
        feature=tuple(forest.feature[k] for k in order),
        threshold=tuple(forest.threshold[k] for k in order),
        yes=children(forest.yes),
        no=children(forest.no),
        mode=tuple(forest.mode[k] for k in order),
        missing=tuple(forest.missing[k] for k in order),
        roots=tuple(place[r] for r in forest.roots),
        votes=tuple(forest.votes[k] for k in order),
    )


def always_voted(forest: Forest) -> set[int]:
    """The targets that get a vote whichever leaves are reached: all leaves of one tree have one for them."""
    found: set[int] = set()
    for root in forest.roots:
        stack, done, common = [root], {root}, None
        while stack:
            k = stack.pop()
            if forest.mode[k] == LEAF:
                here = {forest.target[v] for v in forest.votes[k]}
                common = here if common is None else common & here
                continue
            ahead = {forest.yes[k], forest.no[k]} - done
            stack += ahead
            done |= ahead
        found |= common or set()
    return found


def is_balance(forest: Forest) -> bool:
    """Whether each leaf gives two targets opposite votes."""
    for votes in forest.votes:
        sums = [sum(forest.weight[v] for v in votes if forest.target[v] == t) for t in (0, 1)]
        if sums[0] != -sums[1]:
            return False
    return True


def forest_of(node: Operator, prefix: str) -> Forest:
    """The tables of a node whose votes are in attributes `prefix`_ids, _nodeids, _treeids, _weights."""

    def get(name: str) -> tuple[object, ...]:
        tensor = getattr(node, f"{name}_as_tensor", None)  # in double precision
        return tuple(getattr(node, name)) if tensor is None else tuple(tensor.reshape(-1).tolist())

    trees, ids, modes = get("nodes_treeids"), get("nodes_nodeids"), tuple(str(m) for m in get("nodes_modes"))
    unknown = sorted(set(modes) - {LEAF, *COMPARE})
    if unknown or not modes:
        raise OperatorError(f"unknown kinds of nodes {unknown}" if unknown else "the ensemble has no nodes")
    if (
        len(
            {
                len(trees),
                len(ids),
                len(modes),
                len(get("nodes_truenodeids")),
                len(get("nodes_falsenodeids")),
                len(get("nodes_featureids")),
            }
        )
        != 1
    ):
        raise OperatorError("the lists of nodes have different lengths")
    place = {key: k for k, key in enumerate(zip(trees, ids, strict=True))}

    def child(k: int, name: object) -> int:
        key = (trees[k], name)
        if modes[k] == LEAF:
            return 0
        if key not in place or place[key] == k:
            raise OperatorError(f"node {ids[k]} of tree {trees[k]} leads to node {name}, which is not there")
        return place[key]

    yes = tuple(child(k, n) for k, n in enumerate(get("nodes_truenodeids")))
    no = tuple(child(k, n) for k, n in enumerate(get("nodes_falsenodeids")))
    check_acyclic(yes, no, modes)
    roots = tuple(next(k for k, t in enumerate(trees) if t == tree) for tree in dict.fromkeys(trees))
    votes: list[list[int]] = [[] for _ in modes]
    targets = tuple(int(str(v)) for v in get(f"{prefix}_ids"))
    voters = [get(f"{prefix}_{part}") for part in ("treeids", "nodeids")]
    if len(voters[0]) != len(voters[1]):
        raise OperatorError(f"the votes are of {len(voters[0])} trees and {len(voters[1])} nodes")
    for k, key in enumerate(zip(*voters, strict=True)):
        if key not in place:
            raise OperatorError(f"a vote is of node {key[1]} of tree {key[0]}, which is not there")
        votes[place[key]].append(k)
    missing = tuple(int(str(v)) for v in get("nodes_missing_value_tracks_true")) or (0,) * len(modes)
    return Forest(
        tuple(int(str(v)) for v in get("nodes_featureids")),
        tuple(float(str(v)) for v in get("nodes_values")),
        yes,
        no,
        modes,
        missing,
        roots,
        tuple(tuple(v) for v in votes),
        targets,
        tuple(float(str(v)) for v in get(f"{prefix}_weights")),
    )


def check_acyclic(yes: Sequence[int], no: Sequence[int], modes: Sequence[str]) -> None:
    """OperatorError when a walk could go round for ever."""
    done = [m == LEAF for m in modes]
    open_nodes: set[int] = set()
    for start in range(len(modes)):
        stack = [start]
        while stack:
            k = stack[-1]
            if done[k]:
                stack.pop()
                continue
            pending = [c for c in (yes[k], no[k]) if not done[c]]
            if not pending:
                done[k] = True
                open_nodes.discard(k)
                stack.pop()
            elif k in open_nodes and pending[-1] in open_nodes:
                raise OperatorError("the nodes of a tree form a circle")
            else:
                open_nodes.add(k)
                stack.append(pending[-1])
