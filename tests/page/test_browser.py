"""The page in a real browser: Chromium of the system, driven by playwright. Skipped where one of them is
missing."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot_model.cli import main
from onnx_models import model, save, tensor

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])  # tests may run as root
        yield found
        found.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that is wider than a phone, with all that a page can show."""
    folder = tmp_path_factory.mktemp("browser")
    rng = np.random.default_rng(2)
    constants: dict[str, np.ndarray] = {}
    nodes = []
    for k in range(6):
        constants[f"w{k}"] = rng.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5
        nodes.append(
            helper.make_node(
                "Conv",
                ["x", f"w{k}"],
                [f"branch{k}"],
                name=f"branch{k}",
                strides=[1 + k % 2] * 2,
                pads=[1] * 4,
            )
        )
        nodes.append(helper.make_node("GlobalMaxPool", [f"branch{k}"], [f"most{k}"], name=f"most{k}"))
    nodes.append(helper.make_node("Concat", [f"most{k}" for k in range(6)], ["y"], name="together", axis=1))
    path = save(
        model(nodes, [tensor("x", (1, 3, 12, 12))], [tensor("y", (1, 48, 1, 1))], constants),
        folder / "wide.onnx",
    )
    np.savez(folder / "d.npz", x=rng.standard_normal((2, 3, 12, 12)).astype(np.float32))
    compiled = ["--target", "c", "-o", str(folder), "-q"]
    assert main(["compile", str(path), *compiled]) == 0
    layers = json.loads((folder / "wide.json").read_text())["layers"]
    timed = [
        {
            "layer": x["name"],
            "op": x["op"],
            "macs": x["macs"],
            "cycles": 9 + k,
            "by_reason": {"issue": 9, "loads": k},
        }
        for k, x in enumerate(layers)
    ]
    (folder / "t.json").write_text(
        json.dumps({"cycles": sum(x["cycles"] for x in timed), "target": "c", "layers": timed})
    )
    axes = {
        "x": {"key": "c", "label": "cycles", "better": "less"},
        "y": {"key": "a", "label": "accuracy", "better": "more"},
    }
    (folder / "f.json").write_text(
        json.dumps(
            {**axes, "points": [{"name": "a", "c": 1, "a": 2}, {"name": "b", "c": 2, "a": 3, "chosen": True}]}
        )
    )
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert (
            main(
                [
                    "compare",
                    str(path),
                    str(path),
                    "--b",
                    "reference",
                    "--inputs",
                    str(folder / "d.npz"),
                    "--json",
                ]
            )
            == 0
        )
    (folder / "c.json").write_text(said.getvalue())
    given = {"comparison": "c.json", "times": "t.json", "against": "wide.json", "frontier": "f.json"}
    options = [word for name, file in given.items() for word in (f"--{name}", str(folder / file))]
    assert main(["report", str(path), "--target", "c", "-o", str(folder / "wide.html"), *options]) == 0
    return folder / "wide.html"


@pytest.fixture
def opened(browser: Any, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page in a window of a size and colours; it must load nothing and complain of nothing."""
    width, scheme = getattr(request, "param", (1300, "light"))
    window = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    window.set_default_timeout(5000)
    said, asked = [], []
    window.on("console", lambda message: said.append(message.text))
    window.on("pageerror", lambda error: said.append(str(error)))
    window.on("request", lambda one: asked.append(one.url))
    window.goto(page_file.as_uri())
    yield window
    assert not said and asked == [page_file.as_uri()]
    window.close()


def _inside(inner: dict[str, float], outer: dict[str, float]) -> bool:
    return all(
        outer[a] <= inner[a] + 1 and inner[a] + inner[n] <= outer[a] + outer[n] + 1
        for a, n in (("x", "width"), ("y", "height"))
    )


def test_search_and_click(opened: Any) -> None:
    opened.fill("#search", "branch3")
    assert opened.inner_text("#found").startswith("1 of ") and opened.locator(".box.hit").count() == 1
    assert opened.locator("#cost-table tbody tr:visible").count() == 1
    opened.keyboard.press("Enter")
    assert opened.locator("#details article:visible h3").inner_text().startswith("Step ")
    assert "branch3" in opened.locator("#details article:visible").inner_text()
    assert _inside(opened.locator(".box.chosen").bounding_box(), opened.locator(".scroll").bounding_box())
    assert opened.locator("#details article:visible pre").count() == 1, "its C"
    opened.keyboard.press("Escape")
    assert opened.locator(".dim").count() == 0
    opened.locator(".box", has_text="branch").first.scroll_into_view_if_needed()
    boxes = opened.locator("a.box.weighs")
    boxes.nth(1).click()
    assert (
        opened.locator("a.box.weighs.chosen").count() == 1 and opened.locator(".edges path.near").count() >= 1
    )


def test_keyboard_and_zoom(opened: Any) -> None:
    opened.keyboard.press("/")
    assert opened.evaluate("document.activeElement.id") == "search"
    opened.locator(".scroll").focus()
    before = opened.locator("#flow").bounding_box()["width"]
    opened.keyboard.press("-")
    assert opened.locator("#flow").bounding_box()["width"] < before
    opened.keyboard.press("0")
    assert (
        opened.locator("#flow").bounding_box()["width"] <= opened.locator(".scroll").bounding_box()["width"]
    )
    opened.keyboard.press("1")
    opened.get_by_role("button", name="Larger").click()
    assert opened.locator("#flow").bounding_box()["width"] > before
    tools, seen = opened.locator(".tools").bounding_box(), opened.locator(".scroll").bounding_box()
    assert tools["y"] + tools["height"] <= seen["y"] + 1, "buttons cover no box"


def test_tables_sort(opened: Any) -> None:
    for name, column in (("cost-table", "MACs"), ("time-table", "cycles"), ("accuracy-table", "max error")):
        table = opened.locator(f"#{name}")
        head = table.get_by_role("columnheader", name=column)
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        at = opened.evaluate("(h) => h.cellIndex", head.element_handle())
        cells = [
            float(text.replace(",", ""))
            for text in table.locator(f"tbody tr > :nth-child({at + 1})").all_inner_texts()
        ]
        assert cells == sorted(cells, reverse=True) and len(set(cells)) > (name != "accuracy-table")


@pytest.mark.parametrize("opened", [(1300, "dark"), (390, "light")], indirect=True)
def test_dark_and_on_a_phone(opened: Any) -> None:
    """All views are there, nothing is wider than the window, and the first box is to be seen."""
    for view in ("graph", "accuracy", "memory", "cost", "time", "frontier", "against", "code", "about"):
        section = opened.locator(f"#{view}")
        section.scroll_into_view_if_needed()
        assert section.is_visible() and opened.locator(f"nav a[href='#{view}']").count() == 1
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert _inside(opened.locator(".box").first.bounding_box(), opened.locator(".scroll").bounding_box())
    ground, ink = opened.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, c[4:-1].split(","))) for c in (ground, ink)]
    dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (brightness[0] < brightness[1]) == dark and abs(brightness[0] - brightness[1]) > 400


def test_names_in_the_picture_of_memory_fit_and_differ(browser: Any, tmp_path: Path) -> None:
    """Names as torch writes them, with a front and an ending that all share: labels lie in their rectangles,
    and tell which is which."""
    nodes, last = [], "x"
    for k, kind in enumerate(["Relu", "Neg", "Softmax", "Sigmoid", "Tanh", "Exp", "ReduceSum", "Abs"] * 2):
        name = f"/network/encoder/layers.{k // 8}/self_attention/{kind}"
        more = {"axis": 3} if kind == "Softmax" else {"keepdims": 1} if kind == "ReduceSum" else {}
        nodes.append(helper.make_node(kind, [last], [f"{name}_output_0"], name=name, **more))
        last = nodes[-1].output[0]
    nodes.append(helper.make_node("Neg", [last], ["y"], name="last"))
    whole = model(nodes, [tensor("x", (1, 3, 8, 8))], [tensor("y", (1, 1, 1, 1))], {})
    path = save(whole, tmp_path / "m.onnx")
    assert main(["report", str(path), "--target", "c", "-o", str(tmp_path / "m.html")]) == 0
    window = browser.new_page(viewport={"width": 1300, "height": 800})
    window.goto((tmp_path / "m.html").as_uri())
    held = window.locator("#memory a.held:has(text)")
    assert held.count() >= 2
    for k in range(held.count()):
        box, text = (held.nth(k).locator(part).bounding_box() for part in ("rect", "text"))
        assert _inside(text, box), held.nth(k).text_content()
        named = held.nth(k).get_attribute("aria-label").split(":")[0].split()[1]
        kind = named.split("/")[-1].removesuffix("_output_0")[:4]
        assert kind in held.nth(k).locator("text").text_content()
    window.close()
