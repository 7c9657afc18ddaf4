"""Sums and products of a line of C, without what numbers of a shape leave in the text of a kernel.

A kernel writes `x + (pixel + {i}) * {step}`; where i is 0 and step is 1, the line says `x + pixel`. A line is
read as the grammar of C has it: brackets, in them expressions, in these sums of products of operands. Only
that is folded which keeps the value, its type and the order of the operators: floats are written with a
point, so that -0.0f + 0.0f stays; what the next line may go on with stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from aot_model.c.tokens import Group, Item, Token, tree, written

_MOST = (1 << 31) - 1
_BEFORE_EXPRESSIONS = frozenset("return case else goto".split())


@dataclass
class _Operand:
    """operator: the * / % before it; prefix: casts and unary operators; rest: a name, a number or
    parentheses, with the calls, indices and members behind. An empty rest: the line ends before it.
    """

    operator: Token | None = None
    prefix: list[Item] = field(default_factory=list)
    rest: list[Item] = field(default_factory=list)

    @property
    def only(self) -> Item | None:
        """The name, number or parentheses that it is, with nothing before and behind."""
        return self.rest[0] if len(self.rest) == 1 and not self.prefix else None

    @property
    def number(self) -> int | None:
        return self.only.number if isinstance(self.only, Token) else None

    @property
    def may_be_float(self) -> bool:
        """Whether it is a function's result, a cast, or another number than one of type int: -0.0f + 0 is
        0.0f.
        """
        last = self.rest[-1]
        if isinstance(last, Token):
            return bool(self.prefix) or (last.is_literal and last.number is None)
        return bool(self.prefix) or (len(self.rest) > 1 and last.open.text == "(")


@dataclass
class _Term:
    """A product, and its sign; None of the first one of a sum. open: the next line may go on with it."""

    sign: Token | None = None
    operands: list[_Operand] = field(default_factory=lambda: [_Operand()])
    open: bool = False

    @property
    def number(self) -> int | None:
        return self.operands[0].number if len(self.operands) == 1 else None

    @property
    def items(self) -> list[Item]:
        signed: list[Item] = [self.sign] if self.sign else []
        return signed + [
            i for o in self.operands for i in (*([o.operator] if o.operator else []), *o.prefix, *o.rest)
        ]


@lru_cache(1 << 14)  # layers of a kind repeat their lines
def folded(code: str) -> str:
    """A line of C without literals of strings; the same value in fewer words."""
    if not any(mark in code for mark in ("(", "[", " + ", " - ", " * ")):
        return code
    return written(_folded(tree(code), "", ""))


def _folded(items: list[Item], before: str, behind: str) -> list[Item]:
    """What is in brackets, or in a line. before, behind: the brackets; empty where there are none."""
    result: list[Item] = []
    part: list[Item] = []
    expected = True
    """Whether an operand is to come, so that a sign is no operator."""
    for item in items:
        belongs, expected_then = True, False
        if isinstance(item, Group):
            _fold_group(item, called=not expected)
            expected_then = expected and item.is_type
        elif item.is_comment or item.text in ("++", "--"):
            expected_then = expected
        elif item.text in ("&", "!", "~"):
            belongs = expected_then = expected
            expected_then = True
        elif item.text in ("+", "-", "*", "/", "%", ".", "->"):
            expected_then = True
        elif item.text in _BEFORE_EXPRESSIONS or not (item.is_word or item.is_literal):
            belongs, expected_then = False, True
        if belongs:
            part.append(item)
        else:
            assert isinstance(item, Token)
            result += [*_expression(part, before, item.text), item]
            part, before = [], item.text
        expected = expected_then
    return result + _expression(part, before, behind)


def _fold_group(group: Group, called: bool) -> None:
    """called: a function's name or a keyword is before it."""
    group.items = _folded(group.items, group.open.text, group.close.text if group.close else "")
    inner = group.items[0] if len(group.items) == 1 else None
    if (
        isinstance(inner, Group)
        and inner.close
        and inner.open.text == "("
        and not inner.is_type
        and (group.open.text == "[" or not called)
        and "," not in (str(i).strip() for i in inner.items)
    ):
        group.items = inner.items
    match group.items:
        case [*first, Token() as name, Token("+="), Token("1")] if name.is_name and (
            not first or str(first[-1]).strip() in (",", ";")
        ):
            group.items = [*first, name, Token("++")]


def _parsed(items: list[Item]) -> list[_Term] | None:
    """The sum that items are; None of declarations and others."""
    terms = [_Term()]
    for item in items:
        operand = terms[-1].operands[-1]
        rest, text = operand.rest, item.text if isinstance(item, Token) else ""
        if isinstance(item, Group):
            (operand.prefix if not rest and item.is_type else rest).append(item)
        elif item.is_word or item.is_literal:
            if rest and str(rest[-1]).strip() not in (".", "->"):
                return None
            rest.append(item)
        elif rest and text in (".", "->", "++", "--"):
            rest.append(item)
        elif rest and text in ("+", "-"):
            terms.append(_Term(item))
        elif rest and text in ("*", "/", "%"):
            terms[-1].operands.append(_Operand(item))
        elif not rest and text in ("+", "-", "*", "&", "!", "~", "++", "--"):
            operand.prefix.append(item)
        else:
            return None
    return terms


def _expression(items: list[Item], before: str, behind: str) -> list[Item]:
    """An expression that binds no less than a sum, folded. before, behind: what is around it, empty where the
    line begins and ends.
    """
    terms = _parsed(items) if items else None
    if terms is None:
        return items
    final = terms[-1].operands[-1]
    terms[-1].open = not behind or not final.rest
    argument = (before, behind) == ("(", ")") and len(terms) == len(terms[0].operands) == 1
    """Of a function: parentheses around it may mean something to a macro or an attribute."""
    for term in terms:
        for operand in term.operands:
            _fold_operand(operand, argument or (operand is final and (term.open or behind == "{")))
        if before or term.sign:
            _fold_numbers(term)
        term.operands = [
            o for o in term.operands if not (o.operator and o.operator.text == "*" and o.number == 1)
        ]
        if not term.open and term.sign and len(term.operands) == 1:
            _fold_sign(term, term.operands[0])
            _fold_product(term, term.operands[0].only)
    terms = _sum(terms, begun=bool(before))
    if before in ("(", "=", ",") and behind in (";", ",", ")"):
        match terms:
            case [
                _Term(None, [_Operand(None, [Token("&") as sign], [Token() as name, Group() as index])])
            ] if str(index) == "[0]":
                return [replace(name, space=sign.space)]
    return [item for term in terms for item in term.items]


def _alone(group: Item | None) -> _Operand | None:
    """The operand that parentheses are around, where it is only one."""
    if not isinstance(group, Group) or group.open.text != "(" or not group.close or group.is_type:
        return None
    terms = _parsed(group.items)
    return terms[0].operands[0] if terms and len(terms) == len(terms[0].operands) == 1 else None


def _fold_operand(operand: _Operand, keep: bool) -> None:
    """Parentheses around one operand go, unless `keep`; those of a pointer and its offset before an index."""
    inner = _alone(operand.only)
    if inner and not inner.prefix and not keep:
        operand.rest = _spaced(inner.rest, _space(operand.rest[0]))
    match operand.rest:
        case [Group(Token("(")) as sum_, Group(Token("["), [Token() as index]) as place, *behind] if (
            index.number is not None
        ):
            match _parsed(sum_.items):
                case [first, *terms] if terms and all(t.sign and t.sign.text == "+" for t in terms):
                    name = first.operands[0].only
                    if len(first.operands) == 1 and isinstance(name, Token) and name.is_name:
                        terms[0].sign = None
                        items = _spaced([i for t in terms for i in t.items], "")
                        items = _expression([*items, Token("+", " "), replace(index, space=" ")], "[", "]")
                        operand.rest = [
                            replace(name, space=sum_.open.space),
                            Group(place.open, items, place.close),
                            *behind,
                        ]


def _fold_numbers(term: _Term) -> None:
    """Numbers at the begin of a product become one."""
    while len(term.operands) > 1 and (operator := term.operands[1].operator) and operator.text == "*":
        (a, b), rest = (o.number for o in term.operands[:2]), term.operands[2:]
        if a is None or b is None or a * b > _MOST:
            break
        _become(term, a * b)
        term.operands += rest


def _fold_sign(term: _Term, operand: _Operand) -> None:
    """x - -8, x + (-8)."""
    inner = _alone(operand.only) or operand
    number = _Operand(rest=inner.rest).number
    if term.sign and [str(i).strip() for i in inner.prefix] == ["-"] and number is not None:
        term.sign = replace(term.sign, text="-" if term.sign.text == "+" else "+")
        _become(term, number)


def _fold_product(term: _Term, group: Item | None) -> None:
    """x + (y * 8)."""
    if not isinstance(group, Group) or group.open.text != "(" or not term.sign or term.sign.text != "+":
        return
    inner = _parsed(group.items) or []
    operands = inner[0].operands if len(inner) == 1 else [_Operand()]
    if operands[-1].number is not None and all(o.operator.text == "*" for o in operands if o.operator):
        operands[0].rest = _spaced(operands[0].rest, group.open.space)
        term.operands = operands


def _sum(terms: list[_Term], begun: bool) -> list[_Term]:
    """Without zeros; numbers at its begin become one."""
    kept = terms[:1]
    for term in terms[1:]:
        if term.number != 0 or term.open or kept[-1].operands[-1].may_be_float:
            kept.append(term)
    first, *others = kept
    if begun and others and first.number == 0 and others[0].sign and others[0].sign.text == "+":
        others[0].sign = None
        operand = others[0].operands[0]
        which = operand.prefix or operand.rest
        which[:] = _spaced(which, _space(first.operands[0].rest[0]))
        return others
    while begun and len(kept) > 1 and not kept[1].open and kept[1].sign:
        a, b, minus = first.number, kept[1].number, kept[1].sign.text == "-"
        if a is None or b is None or not 0 <= (total := a - b if minus else a + b) <= _MOST:
            break
        _become(first, total)
        del kept[1]
    return kept


def _become(term: _Term, number: int) -> None:
    """The term is a number."""
    first = term.operands[0]
    term.operands = [_Operand(rest=[Token(str(number), _space((first.prefix or first.rest)[0]))])]


def _space(item: Item) -> str:
    return item.space if isinstance(item, Token) else item.open.space


def _spaced(items: list[Item], space: str) -> list[Item]:
    """With that white space before the first one."""
    first, *rest = items
    changed = (
        replace(first, space=space)
        if isinstance(first, Token)
        else replace(first, open=replace(first.open, space=space))
    )
    return [changed, *rest]
