"""`dql results`: its messages if the store cannot be read."""

from __future__ import annotations

import pytest

from tests.command_line import dql


@pytest.mark.parametrize("command", [("list",), ("show", "latest")])
def test_invalid_storage_options_give_one_message(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQX_RESULTS_STORAGE", "{broken")
    done = dql("results", *command, "--results-root", "s3://lake/dqx")
    assert done.returncode == 2
    assert done.output.startswith(
        "error: the environment variable DQX_RESULTS_STORAGE is not a JSON object\n  help: write"
    )
