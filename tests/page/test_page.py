"""The page of a compiled model: all of the metadata is in it, names of the model cannot become markup, the
same bytes each time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from reader import Element, read

from aot_model.cli import main
from aot_model.pipeline import Compiled, Request, compile_model, page_of
from corpus import MODELS, REASON
from onnx_models import model, save, small_cnn, tensor, unary

EVIL = (
    "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x &lt; {{ 7*7 }} "
    "{% raw %} \u202e \x1b[31m ]]> -->"
)


def compiled(proto: ModelProto, folder: Path, target: str = "cortex-m4") -> Compiled:
    return compile_model(Request(save(proto, folder / "net.onnx"), "net", target))


@pytest.fixture
def cnn(tmp_path: Path) -> Compiled:
    return compiled(small_cnn(), tmp_path)


def bare(number: str) -> int:
    return int(number.replace(",", ""))


def table(root: Element, name: str) -> list[list[str]]:
    found = next(t for t in root.all("table") if t.attributes.get("id") == name)
    body = next(found.all("tbody"))
    return [[cell.text.strip() for cell in row.children] for row in body.all("tr")]


def test_every_layer_of_the_metadata_is_there(cnn: Compiled) -> None:
    facts, root = json.loads(cnn.texts["net.json"]), read(page_of(cnn))
    rows = table(root, "cost-table")
    assert len(rows) == len(facts["layers"]) > 2
    for row, layer in zip(rows, facts["layers"], strict=True):
        assert row[1:4] == [layer["name"], layer["op"], layer["function"].removeprefix("net_")]
        assert [bare(row[k]) for k in (5, 6, 7, 9)] == [
            layer[f] for f in ("macs", "workspace_bytes", "scratch_bytes", "constant_bytes")
        ]
    articles = list(root.all("article"))
    assert [layer["function"] in a.text for a, layer in zip(articles, facts["layers"], strict=True)] == [
        True
    ] * len(articles)
    code = {pre.text for pre in root.all("pre")}
    for layer in facts["layers"]:
        assert any(f"{layer['function']}(" in text and text.rstrip().endswith("}") for text in code), layer[
            "function"
        ]
    assert all(text in cnn.texts["net.c"] for text in code)
    for port in (*facts["inputs"], *facts["outputs"]):
        assert any(
            row.text.count(port["name"])
            for row in next(e for e in root.all("section") if e.attributes["id"] == "about").all("tr")
        )


def test_every_buffer_is_a_rectangle_and_a_row(cnn: Compiled) -> None:
    root, view = read(page_of(cnn)), cnn.view
    rows = table(root, "buffer-table")
    planned = [r for r in rows if r[2] != "caller"]
    want = sorted((b.name, a, b.nbytes, *view.addresses.live[b]) for b, (_, a) in view.addresses.of.items())
    assert sorted((r[0], *map(bare, r[3:7])) for r in planned) == want and want
    assert {r[0] for r in rows if r[2] == "caller"} == {
        b.name for b in (*view.program.inputs, *view.program.outputs)
    }
    assert len(list(root.all("a", "held"))) == len(rows)
    size = {p.name: p.size for p in view.pools}
    assert all(bare(r[3]) + bare(r[4]) <= size[r[2]] for r in planned)


def test_peak_is_what_the_metadata_says(cnn: Compiled) -> None:
    """Bytes in use, counted here byte by byte."""
    root, view = read(page_of(cnn)), cnn.view
    end = max(last for _, last in view.addresses.live.values())
    used = []
    for step in range(end + 1):
        memory = np.zeros(view.workspace_size, bool)
        for buffer, (_, at) in view.addresses.of.items():
            first, last = view.addresses.live[buffer]
            if first <= step <= last:
                memory[at : at + buffer.nbytes] = True
        used.append(int(memory.sum()))
    caption = next(root.all("figcaption")).text
    assert f"at most {max(used):,} in use, in step {used.index(max(used))}" in caption


def links(root: Element) -> tuple[list[str], list[str]]:
    return [e.attributes["id"] for e in root.all() if "id" in e.attributes], [
        e.attributes["href"] for e in root.all("a")
    ]


def test_links_lead_somewhere(cnn: Compiled) -> None:
    ids, hrefs = links(read(page_of(cnn)))
    assert len(set(ids)) == len(ids)
    assert {h[0] for h in hrefs} == {"#"} and {h[1:] for h in hrefs} <= set(ids)


def test_nothing_is_loaded(cnn: Compiled) -> None:
    text = page_of(cnn)
    root = read(text)
    for element in root.all():
        assert element.tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "use")
        assert not {"src", "srcset", "action", "formaction", "ping"} & set(element.attributes)
        assert not any(name.startswith("on") for name in element.attributes)
    assert "@import" not in text and "url(" not in text
    script = next(root.all("script"))
    policy = next(
        e.attributes["content"]
        for e in root.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy


def test_for_keyboards_and_screen_readers(cnn: Compiled) -> None:
    root = read(page_of(cnn))
    assert all(e.attributes.get("aria-label") for e in root.all("a", "box")) and all(
        e.attributes.get("aria-label") for e in root.all("a", "held")
    )
    assert all(e.text.strip() or e.attributes.get("aria-label") for e in root.all("button"))
    assert all(e.attributes.get("scope") == "col" for head in root.all("thead") for e in head.all("th"))
    css = next(root.all("style")).text
    assert "prefers-color-scheme: dark" in css and "max-width: 900px" in css


def evil_names() -> ModelProto:
    x, h, y = f"x{EVIL}", f"h{EVIL}", f"y{EVIL}"
    nodes = [
        helper.make_node("Relu", [x], [h], name=f"n{EVIL}"),
        helper.make_node("MatMul", [h, f"w{EVIL}"], [y], name=f"m{EVIL}"),
    ]
    return model(nodes, [tensor(x, (1, 4))], [tensor(y, (1, 3))], {f"w{EVIL}": np.ones((4, 3), np.float32)})


def test_names_cannot_be_markup(tmp_path: Path) -> None:
    """The same elements with the same attributes as for the same model with harmless names."""
    text = page_of(compiled(evil_names(), tmp_path))
    tags = [e.tag for e in read(text).all()]
    harmless = evil_names()
    for node in harmless.graph.node:
        node.name = node.name[0]
        node.input[:] = [n[0] for n in node.input]
        node.output[:] = [n[0] for n in node.output]
    for value in (*harmless.graph.input, *harmless.graph.output, *harmless.graph.initializer):
        value.name = value.name[0]
    assert tags == [e.tag for e in read(page_of(compiled(harmless, tmp_path))).all()]
    assert (
        text.count("<script") == text.count("</script") == 1
        and "<img" not in text
        and "onerror=alert(1)>" not in text
    )
    assert "{{ 7*7 }}" in text, "a name is text, never a template"
    assert not re.search("[\u202e\x1b]", text)
    text.encode()


def test_same_bytes(tmp_path: Path) -> None:
    proto = small_cnn()
    first = page_of(compiled(proto, tmp_path))
    compiled(unary("Relu"), tmp_path)
    assert page_of(compiled(proto, tmp_path)) == first
    assert str(tmp_path) not in first


def test_command_line(tmp_path: Path) -> None:
    net = str(save(small_cnn(), tmp_path / "net.onnx"))
    assert main(["report", net, "--target", "cortex-m4", "-o", str(tmp_path / "a/r.html")]) == 0
    assert (
        main(
            [
                "compile",
                net,
                "--target",
                "cortex-m4",
                "-o",
                str(tmp_path / "out"),
                "--report",
                str(tmp_path / "out/r.html"),
            ]
        )
        == 0
    )
    assert (tmp_path / "a/r.html").read_bytes() == (tmp_path / "out/r.html").read_bytes()
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["r.html"]
    assert (
        main(
            [
                "compile",
                net,
                "--target",
                "cortex-m4",
                "-o",
                str(tmp_path / "out"),
                "--report",
                str(tmp_path / "out/r.txt"),
            ]
        )
        == 0
    )
    assert (tmp_path / "out/r.txt").read_text().startswith("net for cortex-m4:")


def test_the_cache_tells_page_and_table_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = str(save(small_cnn(), tmp_path / "net.onnx"))
    monkeypatch.setenv("AOT_MODEL_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("r.txt", "r.html", "s.txt", "s.html"):
        assert main(["compile", net, "-o", str(tmp_path / "out"), "--report", str(tmp_path / name)]) == 0
    assert (
        (tmp_path / "r.txt").read_bytes()
        == (tmp_path / "s.txt").read_bytes()
        != (tmp_path / "r.html").read_bytes()
    )
    assert (tmp_path / "r.html").read_bytes() == (tmp_path / "s.html").read_bytes()
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("name", ["mbv2_035_224_qdq.onnx", "tfm_mnist_lstm_int8.tflite"])
def test_size(name: str) -> None:
    assert MODELS is not None
    made = compile_model(Request(MODELS / name, "net", "cortex-m4"))
    text = page_of(made)
    assert len(text.encode()) < 2_000_000
    root = read(text)
    assert len(table(root, "cost-table")) == len(list(made.view.program.calls()))
    assert links(root)[1]
