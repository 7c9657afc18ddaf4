"""The Bazel workspace of a test run: starting a server takes longer than a build, so one worker has all tests
with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bazel_project import BAZEL, REASON, Workspace


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "workspace" in getattr(item, "fixturenames", ()) or "[Bazel" in item.name:
            item.add_marker(pytest.mark.xdist_group("bazel"))


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    if BAZEL is None:
        pytest.skip(REASON)
    root = tmp_path_factory.mktemp("bazel")
    made = Workspace(root / "workspace", root / "user_root")
    made.create()
    yield made
    made.bazel("shutdown")
