"""Where imported files are searched, and what is never read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dqx_airflow.dql.import_readers import FileReader, search_path
from dqx_airflow.values import SourceFile


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a suite in `suites`, and a folder beside the project."""
    for name in ("project/suites/beside.dql", "project/common/shared.dql", "library/team.dql"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (tmp_path / "secret.dql").write_text("# secret\n")
    return tmp_path / "project"


def reader(project: Path, *search: Path) -> FileReader:
    return FileReader("suites/main.dql", project / "suites" / "main.dql", project, search)


@pytest.mark.parametrize("path", ["beside.dql", "./beside.dql", "../common/shared.dql"])
def test_a_path_is_relative_to_the_importing_file(project: Path, path: str) -> None:
    assert isinstance(reader(project)("suites/main.dql", path), SourceFile)


def test_a_path_is_then_relative_to_the_project_root(project: Path) -> None:
    found = reader(project)("suites/main.dql", "common/shared.dql")
    assert found == SourceFile("common/shared.dql", "# project/common/shared.dql\n")


def test_a_path_is_then_looked_up_on_the_search_path(project: Path) -> None:
    found = reader(project, project.parent / "library")("suites/main.dql", "team.dql")
    assert isinstance(found, SourceFile)
    assert found.text == "# library/team.dql\n"


def test_a_dot_at_the_beginning_means_the_importing_file_alone(project: Path) -> None:
    found = reader(project)("suites/main.dql", "./common/shared.dql")
    assert isinstance(found, str)
    assert "file not found" in found


def test_an_imported_file_imports_relative_to_itself(project: Path) -> None:
    read = reader(project)
    shared = read("suites/main.dql", "../common/shared.dql")
    assert isinstance(shared, SourceFile)
    assert isinstance(read(shared.name, "shared.dql"), SourceFile)
    assert isinstance(read(shared.name, "./beside.dql"), str)


@pytest.mark.parametrize("path", ["../../secret.dql", "{absolute}"])
def test_files_outside_the_allowed_folders_are_not_read(project: Path, path: str) -> None:
    absolute = str(project.parent / "secret.dql")
    found = reader(project)("suites/main.dql", path.format(absolute=absolute))
    assert isinstance(found, str)
    assert "outside the allowed folders" in found


def test_a_link_does_not_lead_outside(project: Path) -> None:
    os.symlink(project.parent / "secret.dql", project / "suites" / "link.dql")
    assert isinstance(reader(project)("suites/main.dql", "link.dql"), str)


@pytest.mark.parametrize(
    "path", ["", "a\0b", "../common", "x" * 5000], ids=["empty", "nul", "folder", "long"]
)
def test_an_unreadable_path_has_a_reason(project: Path, path: str) -> None:
    assert isinstance(reader(project)("suites/main.dql", path), str)


def test_a_binary_file_has_a_reason(project: Path) -> None:
    (project / "suites" / "binary.dql").write_bytes(b"\xff\xfe")
    found = reader(project)("suites/main.dql", "binary.dql")
    assert isinstance(found, str)
    assert found.startswith("this is not UTF-8 text")


def test_the_search_path_is_separated_by_colons() -> None:
    assert search_path({"DQL_PATH": "/a:/b:"}) == (Path("/a"), Path("/b"))
    assert search_path({}) == ()


@pytest.mark.parametrize("mark", ["dqx.toml", ".git"])
@pytest.mark.parametrize("path", ["common/shared.dql", "../common/shared.dql"])
def test_the_project_root_is_found_from_any_working_directory(
    project: Path, mark: str, path: str
) -> None:
    suites = project / "suites"
    reason = FileReader("main.dql", suites / "main.dql", suites)("main.dql", path)
    assert isinstance(reason, str)
    (project / mark).touch()
    read = FileReader("main.dql", suites / "main.dql", suites)
    found = read("main.dql", path)
    assert found == SourceFile(
        str(project / "common" / "shared.dql"), "# project/common/shared.dql\n"
    )
    assert isinstance(read("main.dql", "../../secret.dql"), str)


def test_a_refusal_explains_how_to_mark_a_project(project: Path) -> None:
    suites = project / "suites"
    reason = FileReader("main.dql", suites / "main.dql", suites)("main.dql", "../common/shared.dql")
    assert isinstance(reason, str)
    assert reason.endswith("put a dqx.toml at its root")
