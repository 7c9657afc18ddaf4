"""A planner that lays memory out at random, within what calls say of their buffers."""

from __future__ import annotations

import random

from aot_model.memory.bodies import Body, Problem
from aot_model.memory.layout import Interval, Layout, lowest


class Scattered:
    """A planner whose bodies lie anywhere, most of them over or beside others."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def fit(self, forbidden: list[Interval], body: Body, ceiling: int = 0) -> int:
        """A place near the ends of what is forbidden, rather between them than behind all: there bodies lie
        over each other as far as they may. Something is left before the first.
        """
        ends = [end for interval in forbidden for end in interval] or [self.rng.randrange(256)]
        behind = max((high for _, high in forbidden), default=0)
        places = {
            end + sign * distance
            for end in (*ends, behind)
            for sign in (-1, 1)
            for distance in (0, body.align, self.rng.randrange(1, 32), self.rng.randrange(1, 512))
        }
        places = {at + (body.residue - at) % body.align for at in places} | {lowest(forbidden, body)}
        free = sorted(
            at for at in places if at >= body.residue and not any(low < at < high for low, high in forbidden)
        )
        between = [at for at in free if at < behind]
        return self.rng.choice(between if between and self.rng.random() < 0.8 else free)

    def __call__(self, problem: Problem) -> Layout:
        layout, order = Layout(problem), list(range(len(problem.bodies)))
        self.rng.shuffle(order)
        layout.place_all(order, self.fit)
        return layout
