"""The location of a file: for users its address in a Git repository, or else its path; the files
that ship with the package, and the tables in those beside its modules; and how a file is replaced.

Only reads Git's files, since a worker may not have the program `git`.
"""

from __future__ import annotations

import configparser
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote

from dqx_airflow.values import SourceLocation
from dqx_airflow.values.redact import redact_urls

_SSH = re.compile(r"(?:ssh://)?(?:[^@/]+@)(?P<host>[^:/]+)(?::\d+)?[:/](?P<path>.+)")
_MOST_CLONES = 3


def source_location(file: Path) -> SourceLocation:
    """The location of a file of a suite or a contract.

    In a checkout whose remote `origin` is on a server: the page of the file at the checked-out
    commit, in the form of GitHub and GitLab. Credentials in the address are removed.
    """
    file = file.absolute()
    nowhere = SourceLocation(file.as_uri())
    for folder in file.parents:
        git = folder / ".git"
        if git.exists():
            try:
                return (
                    _in_checkout(file.relative_to(folder).as_posix(), _git_folder(git)) or nowhere
                )
            except (OSError, ValueError, configparser.Error):
                return nowhere
    return nowhere


def _in_checkout(path: str, git: Path) -> SourceLocation | None:
    repository = _web_address(_origin(git))
    version = _commit(git)
    if repository is None or version is None:
        return None
    url = f"{repository}/blob/{version}/{quote(path)}"
    return SourceLocation(url, repository, path, version)


def _git_folder(git: Path) -> Path:
    """The Git folder behind `.git`: in a worktree or submodule, that is a file with its path."""
    if git.is_dir():
        return git
    named = git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    return (git.parent / named).resolve()


def _common(git: Path) -> Path:
    """The folder that a worktree shares with its repository."""
    path = git / "commondir"
    return (git / path.read_text(encoding="utf-8").strip()).resolve() if path.exists() else git


def _origin(git: Path) -> str:
    """The address of `origin`; if that is a local repository, the address of its own `origin`."""
    for _ in range(_MOST_CLONES):
        config = configparser.RawConfigParser(strict=False, allow_no_value=True)
        config.read_string((_common(git) / "config").read_text(encoding="utf-8"))
        url = config.get('remote "origin"', "url", fallback="") or ""
        clone = Path(url.removeprefix("file://"))
        if not url.startswith(("/", "file://")) or not (clone / "config").is_file():
            return url
        git = clone
    return ""


def _commit(git: Path) -> str | None:
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    for folder in (git, _common(git)):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").strip()
    packed = _common(git) / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), None)


def _web_address(url: str) -> str | None:
    """The address of a repository for browsers; None if it has none.

    >>> _web_address("git@example.com:data/pipelines.git")
    'https://example.com/data/pipelines'
    """
    if url.startswith(("http://", "https://")):
        scheme, _, rest = url.partition("://")
        # A user, possibly with a password or token.
        host, slash, path = rest.partition("/")
        address = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    elif match := _SSH.fullmatch(url):
        address = f"https://{match['host']}/{match['path']}"
    else:
        return None
    return redact_urls(address.rstrip("/").removesuffix(".git"))


_PACKAGE = Path(__file__).resolve().parents[1]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields the path of a temporary file, which replaces `path` atomically at the end of the
    block: others see the old file or the new one.

    :raises OSError: it cannot be written; then the old one stays.
    """
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as beside:
        part = Path(beside, path.name)
        yield part
        part.replace(path)


def shipped(path: str) -> Path:
    """The file or folder `path`, such as `spark_jobs/gate_job.py`.

    In a checkout it is next to the package, in an installed wheel inside of it.

    :raises FileNotFoundError: it is in neither place.
    """
    for home in (_PACKAGE.parent, _PACKAGE):
        if (home / path).exists():
            return home / path
    raise FileNotFoundError(f"{path} is missing: reinstall dqx-airflow")


_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?(?!//)", re.IGNORECASE)


def local_path(location: str) -> str:
    """The path that a `file:` URI names on this machine, decoded; any other location unchanged.

    Spark prints `file:/lake`, Python and browsers write `file:///lake`.

    >>> local_path("file:/lake/a%20b"), local_path("FILE:///lake"), local_path("s3://lake")
    ('/lake/a b', '/lake', 's3://lake')
    """
    uri = _FILE_URI.match(location)
    return location if uri is None else unquote(location[uri.end() :])


def first_bytes(path: Path, most: int) -> bytes:
    """The beginning of a regular file.

    :param most: the maximum number of bytes.
    :raises OSError: it cannot be read, or is no regular file: a pipe or a device may never end.
    """
    # Without blocking: opening a pipe would wait for someone who writes into it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        return file.read(most)


@cache
def table_rows(package: str, name: str, heading: str) -> tuple[list[str], ...]:
    """The rows below a heading of a text in a package, each as its columns."""
    rows = _text(package, name).partition(f"\n{heading}\n")[2].partition("\n\n")[0]
    return tuple(line.strip().split(" | ") for line in rows.splitlines())


@cache
def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")
