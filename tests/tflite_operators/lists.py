"""Cases: loops that gather results in lists of tensors, as Keras' recurrent layers do with SELECT_TF_OPS.
LiteRT without TensorFlow has no such operators, so numpy says what they give.
"""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, network

from tflite_models import BOOL, FLOAT32, G, Op, T, floats, ints

_VARIANT = 14


def number(name: str, value: int | None = None) -> T:
    """One int32."""
    return ints(name, np.asarray(value, np.int32)) if value is not None else T(name, (), 2, scale=())


def variant(name: str) -> T:
    return T(name, (), _VARIANT, scale=())


def loop(items: int, steps: int, shape: tuple[int, ...] = (-1, 3), custom: bytes = b"") -> OpCase:
    """h = h * x[i] + x[i]; the list has h of each turn, or of the last one alone where it has one item."""
    x, h = draw(steps, 2, 3), draw(2, 3)
    main = [
        floats("x", steps, 2, 3),  # 0
        floats("h", 2, 3),
        ints("shape", np.asarray(shape, np.int32)),
        number("items", items),
        variant("list"),  # 4
        number("zero", 0),
        number("end"),  # 6
        variant("full"),
        floats("last", 2, 3),  # 8
        floats("sequence", steps, 2, 3),
        floats("y", items, 2, 3),  # 10
        floats("sum", steps, 2, 3),
    ]
    made = [
        Op("CUSTOM:FlexTensorListReserve", (2, 3), (4,)),
        Op(
            "WHILE",
            (5, 4, 1, 0),
            (6, 7, 8, 9),
            "WhileOptions",
            {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2},
        ),
        Op("CUSTOM:FlexTensorListStack", (7, 2), (10,)),
        Op("ADD", (9, 9), (11,), "AddOptions"),
    ]
    carried = [number("i"), variant("l"), floats("h", 2, 3), floats("x", steps, 2, 3)]
    again = G(
        [*carried, number("n", steps), T("c", (), BOOL, scale=())],
        [Op("LESS", (0, 4), (5,))],
        [0, 1, 2, 3],
        [5],
    )
    body = [
        *carried,
        number("one", 1),  # 4
        number("next"),
        floats("now", 2, 3),  # 6
        floats("product", 2, 3),
        floats("new", 2, 3),  # 8
        variant("longer"),
        number("first", 0),  # 10
    ]
    turn = [
        Op("ADD", (0, 4), (5,), "AddOptions"),
        Op("GATHER", (3, 0), (6,), "GatherOptions"),
        Op("MUL", (2, 6), (7,), "MulOptions"),
        Op("ADD", (7, 6), (8,), "AddOptions"),
        Op("CUSTOM:FlexTensorListSetItem", (1, 10 if items == 1 else 0, 8), (9,), custom=custom),
    ]
    states = []
    for row in x:
        states.append((states[-1] if states else h) * row + row)
    y = np.zeros((items, 2, 3), np.float32)
    if items == 1:
        y[0] = states[-1]
    else:
        y[:steps] = states
    return network(
        f"LIST-{items}-of-{steps}",
        main,
        made,
        [0, 1],
        [10, 8, 11, 9],
        (x, h),
        again,
        G(body, turn, [0, 1, 2, 3], [5, 9, 8, 3]),
        oracle="numpy",
        expected=(y, states[-1], x + x, x),
    )


def _items() -> OpCase:
    """An item taken from a list and put elsewhere in it."""
    x = draw(4, 3)
    main = [
        floats("x", 4, 3),
        number("from"),
        ints("shape", np.asarray([3], np.int32)),
        variant("list"),  # 3
        T("item", (3,), FLOAT32, scale=()),
        number("length"),  # 5
        number("minus", -1),
        number("end"),  # 7
        variant("changed"),
        floats("y", 4, 3),  # 9
    ]
    made = [
        Op("CUSTOM:FlexTensorListFromTensor", (0, 2), (3,)),
        Op("CUSTOM:FlexTensorListGetItem", (3, 1, 2), (4,)),
        Op("CUSTOM:FlexTensorListLength", (3,), (5,)),
        Op("ADD", (5, 6), (7,), "AddOptions"),
        Op("CUSTOM:FlexTensorListSetItem", (3, 7, 4), (8,)),
        Op("CUSTOM:FlexTensorListStack", (8, 2), (9,)),
    ]
    y = x.copy()
    y[3] = x[1]
    given = (x, np.asarray(1, np.int32))
    return network("LIST-items", main, made, [0, 1], [9, 4], given, oracle="numpy", expected=(y, x[1]))


CASES = [loop(5, 5), loop(1, 4), loop(7, 5, (2, 3)), _items()]
