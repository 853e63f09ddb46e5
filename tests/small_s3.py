"""A small object store with the S3 API, for what a whole server of it does not let us decide.

It holds one bucket in memory, looks at no signature, and can refuse to delete, as the policy of a
role does. It is a process of its own: deltalake keeps Python from answering while it waits.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from xml.sax.saxutils import escape

from tests.http_stub import Asked, Reply, http_stub

_CONTROL = "/control"
_NEVER = "2024-05-17T00:00:00.000Z"
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class _Bucket:
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    may_delete: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Reply:
        url = urlsplit(asked.path)
        _, _, key = unquote(url.path).lstrip("/").partition("/")
        query = parse_qs(url.query, keep_blank_values=True)
        if url.path == _CONTROL:
            return self._controlled(query)
        with self.lock:
            if asked.method == "GET" and "list-type" in query:
                return self._listed(query.get("prefix", [""])[0], "delimiter" in query)
            if asked.method == "POST" and "delete" in query:
                return self._deleted(re.findall(r"<Key>(.*?)</Key>", asked.body.decode()))
            if "uploads" in query:
                self.uploads[str(len(self.uploads))] = {}
                return _xml("Result", f"<UploadId>{len(self.uploads) - 1}</UploadId>")
            if "uploadId" in query:
                return self._uploaded(key, query, asked)
            match asked.method:
                case "PUT":
                    return self._put(key, asked)
                case "GET" | "HEAD":
                    return self._got(key, asked)
                case "DELETE":
                    return self._deleted([key], alone=True)
        return Reply(501)

    def _controlled(self, query: dict[str, list[str]]) -> Reply:
        if "may_delete" in query:
            self.may_delete = query["may_delete"] == ["True"]
        return Reply(200, sorted(self.objects))

    def _uploaded(self, key: str, query: dict[str, list[str]], asked: Asked) -> Reply:
        """Takes a part, or makes an object of all of them."""
        parts = self.uploads[query["uploadId"][0]]
        if asked.method == "PUT":
            parts[int(query["partNumber"][0])] = asked.body
            return Reply(200, headers={"ETag": _tag(asked.body)})
        self.objects[key] = b"".join(parts[number] for number in sorted(parts))
        return _xml("Result", f"<ETag>{escape(_tag(self.objects[key]))}</ETag>")

    def _put(self, key: str, asked: Asked) -> Reply:
        if asked.headers.get("If-None-Match") == "*" and key in self.objects:
            return _error(412, "PreconditionFailed")
        self.objects[key] = asked.body
        return Reply(200, headers={"ETag": _tag(asked.body)})

    def _got(self, key: str, asked: Asked) -> Reply:
        if key not in self.objects:
            return Reply(404) if asked.method == "HEAD" else _error(404, "NoSuchKey")
        content = self.objects[key]
        headers = {"ETag": _tag(content), "Last-Modified": "Fri, 17 May 2024 00:00:00 GMT"}
        if match := _RANGE.fullmatch(asked.headers.get("Range") or ""):
            start, end = int(match[1]), int(match[2] or len(content))
            part = content[start : end + 1]
            last = start + len(part) - 1
            headers["Content-Range"] = f"bytes {start}-{last}/{len(content)}"
            return Reply(206, part, headers)
        if asked.method == "HEAD":
            return Reply(200, b"", {**headers, "Content-Length": str(len(content))})
        return Reply(200, content, headers)

    def _deleted(self, keys: list[str], *, alone: bool = False) -> Reply:
        if not self.may_delete:
            if alone:
                return _error(403, "AccessDenied")
            errors = [f"<Error><Key>{escape(key)}</Key>{_DENIED}</Error>" for key in keys]
            return _xml("DeleteResult", "".join(errors))
        for key in keys:
            self.objects.pop(key, None)
        deleted = [f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys]
        return Reply(204) if alone else _xml("DeleteResult", "".join(deleted))

    def _listed(self, prefix: str, has_delimiter: bool) -> Reply:
        found, folders = [], dict[str, None]()
        for key in sorted(key for key in self.objects if key.startswith(prefix)):
            rest = key[len(prefix) :]
            if has_delimiter and "/" in rest:
                folders[f"{prefix}{rest.partition('/')[0]}/"] = None
                continue
            content = self.objects[key]
            found.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{_NEVER}</LastModified>"
                f"<ETag>{escape(_tag(content))}</ETag><Size>{len(content)}</Size></Contents>"
            )
        found += [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in folders
        ]
        return _xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{''.join(found)}")


_DENIED = "<Code>AccessDenied</Code><Message>no right to delete</Message>"


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _xml(name: str, content: str) -> Reply:
    return Reply(200, f"<{name}>{content}</{name}>".encode(), {"Content-Type": "application/xml"})


def _error(status: int, code: str) -> Reply:
    return Reply(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())


@dataclass(frozen=True)
class SmallS3:
    """A store on a free port."""

    address: str

    @property
    def options(self) -> dict[str, str]:
        """The storage options that lead here."""
        keys = {"aws_access_key_id": "anybody", "aws_secret_access_key": "anything"}
        place = {"aws_endpoint_url": self.address, "aws_region": "us-east-1"}
        return {**keys, **place, "aws_allow_http": "true"}

    @property
    def keys(self) -> list[str]:
        """The keys of its objects."""
        with urlopen(f"{self.address}{_CONTROL}") as answer:
            keys: list[str] = json.load(answer)
        return keys

    def allow_deletion(self, may_delete: bool) -> None:
        urlopen(f"{self.address}{_CONTROL}?may_delete={may_delete}").close()


@contextmanager
def small_s3() -> Iterator[SmallS3]:
    """A store, which ends with the block."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        yield SmallS3(process.stdout.readline().decode().strip())
        process.stdin.close()


if __name__ == "__main__":
    with http_stub(_Bucket().answer) as found:
        print(found, flush=True)
        sys.stdin.read()
