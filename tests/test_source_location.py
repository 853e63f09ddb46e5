"""The link from a catalog to the rules of a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.values.files import source_location
from tests.processes import output_of


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    printed = output_of(["git", *identity, *arguments], cwd=folder)
    return printed.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "pipelines"
    (folder / "dags").mkdir(parents=True)
    (folder / "dags" / "my orders.dql").write_text("suite")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def location(checkout: Path) -> tuple[str, str | None, str | None]:
    found = source_location(checkout / "dags" / "my orders.dql")
    return found.url, found.repository, found.version


@pytest.mark.parametrize(
    "remote",
    [
        "https://example.com/data/pipelines.git",
        "https://robot:token@example.com/data/pipelines",
        "git@example.com:data/pipelines.git",
        "ssh://git@example.com:22/data/pipelines.git",
    ],
)
def test_a_file_of_a_checkout_is_at_its_commit_in_the_repository(
    checkout: Path, remote: str
) -> None:
    git(checkout, "remote", "add", "origin", remote)
    commit = git(checkout, "rev-parse", "HEAD")
    page = f"https://example.com/data/pipelines/blob/{commit}/dags/my%20orders.dql"
    assert location(checkout) == (page, "https://example.com/data/pipelines", commit)
    git(checkout, "pack-refs", "--all")
    assert location(checkout)[2] == commit


def test_a_clone_of_a_clone_is_found_where_the_first_one_comes_from(checkout: Path) -> None:
    """So Airflow's bundle of DAGs from Git keeps them."""
    git(checkout, "remote", "add", "origin", "https://example.com/data/pipelines")
    bare, work = checkout.parent / "bare", checkout.parent / "work"
    git(checkout, "clone", "--quiet", "--bare", str(checkout), str(bare))
    git(bare, "remote", "set-url", "origin", "https://example.com/data/pipelines")
    git(checkout, "clone", "--quiet", str(bare), str(work))
    tree = checkout.parent / "tree"
    git(work, "worktree", "add", "--quiet", "--detach", str(tree))
    assert location(work)[1] == location(tree)[1] == "https://example.com/data/pipelines"


def test_other_files_have_their_path(checkout: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.dql"
    assert source_location(alone).url == alone.as_uri()
    inside = checkout / "dags" / "my orders.dql"
    assert location(checkout) == (inside.as_uri(), None, None)
    (checkout / ".git" / "config").write_text("[broken")
    assert location(checkout) == (inside.as_uri(), None, None)
