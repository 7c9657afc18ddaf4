"""The page as one text: no file beside it, no network, the same bytes for the same model.

Names in it are the model's, and nobody trusts them: everything that a template prints is escaped, what cannot
be printed becomes `?`, and the page's own policy lets no script run but the one whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache

import jinja2
from markupsafe import Markup

from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import ModelView
from aot_model.page.chart import chart
from aot_model.page.code import definitions
from aot_model.page.given import Given
from aot_model.page.graph import HEIGHT, picture
from aot_model.page.layered import WIDTH
from aot_model.page.layers import rows
from aot_model.page.memory import lanes


def page(view: ModelView, source: str, given: Given | None = None) -> str:
    """HTML of a compiled model and of its generated C, and of what others measured of it."""
    given = given or Given()
    heats: dict[int, int] = {}
    for tensor in given.accuracy.tensors if given.accuracy else ():
        if tensor.step is not None:
            heats[tensor.step] = min(tensor.heat, heats.get(tensor.step, tensor.heat))
    memory = lanes(view)
    layers = rows(view, memory)
    code = definitions(source, [f.name for f in view.functions])
    script = _text("page.js.j2")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            m=view,
            facts=metadata_of(view),
            lanes=memory,
            charts=[chart(lane) for lane in memory],
            layers=layers,
            graph=picture(view, heats),
            given=given,
            box=(WIDTH, HEIGHT),
            code=[code[f.name] for f in view.functions if f.name in code],
            known=set(code),
            most={
                k: max((getattr(r, k) for r in layers), default=0)
                for k in ("macs", "ram", "scratch", "constants", "output")
            },
            style=Markup(_text("page.css.j2")),
            script=Markup(script),
            policy=_policy(script),
        )
    )


def _policy(script: str) -> str:
    """Of Content-Security-Policy: nothing is loaded, and no script runs but this one."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("aot_model", "page/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _text(name: str) -> str:
    """A file of the page as it is: not a template, but found where templates are."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _printable(value: object) -> object:
    """Names without control characters, lone surrogates and changes of the direction of writing."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in value)
