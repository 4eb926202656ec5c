"""Archives, objects and copies whose names lead elsewhere: nothing is written outside the directory that is meant."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core.exceptions import NotFound

from airflow_accel_provider.emulator.dataproc import fetching, mirror
from airflow_accel_provider.emulator.dataproc.fetching import FileNotThereError, fetch
from airflow_accel_provider.emulator.dataproc.mirror import Mirror, named_buckets
from airflow_accel_provider.hooks.submission._files import local

ASTRAY = ("../out", "/tmp/accel-out", "a/../../out", "..", "../../../../out", "a/./../../out")  # noqa: S108 - not made


class Storage:
    """Cloud Storage's client over objects in memory."""

    def __init__(self, **objects: bytes) -> None:
        self._objects = objects

    def bucket(self, _: str) -> Storage:
        """Return the only bucket."""
        return self

    def list_blobs(self, _: str) -> list[Any]:
        """Return all objects."""
        return [self.blob(name) for name in self._objects]

    def blob(self, name: str) -> Any:
        """Return an object, there or not."""

        def download(path: str) -> None:
            if name not in self._objects:
                raise NotFound(name)
            with open(path, "wb") as file:  # noqa: PTH123 - as Google's client does
                file.write(self._objects[name])

        return SimpleNamespace(name=name, generation=1, download_to_filename=download)


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/")
        archive.writestr("link/through", "x")
    return content.getvalue()


def tarred(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        archive.addfile(member)
        archive.addfile(tarfile.TarInfo(f"{name}/through"))
    return content.getvalue()


def outside(folder: Path, inside: Path) -> list[Path]:
    """Return what was written beside the directory that is meant."""
    return [path for path in folder.rglob("*") if inside not in (path, *path.parents)]


def fetched(folder: Path, uri: str, content: bytes) -> list[Path]:
    """Return what is outside of a batch's directory after an archive was unpacked, or refused, there."""
    inside = folder / "a" / "batch"
    inside.mkdir(parents=True)
    before = outside(folder, inside)
    name = uri.removeprefix("gs://b/").partition("#")[0]
    # Refused is as good as kept within.
    with suppress(FileNotThereError, OSError, zipfile.BadZipFile):
        fetch({"pysparkBatch": {"archiveUris": [uri]}}, Storage(**{name: content}), inside)
    return [path for path in outside(folder, inside) if path not in before]


@pytest.mark.parametrize("name", ASTRAY)
def test_no_archive_is_unpacked_elsewhere(tmp_path: Path, name: str) -> None:
    """Members of zips and tars with names that lead out of the batch's directory write nothing there."""
    assert fetched(tmp_path / "zip", "gs://b/x.zip", zipped(name, "good")) == []
    assert fetched(tmp_path / "tar", "gs://b/x.tgz", tarred(name)) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("link", ["/", "../../..", "/etc/passwd"])
def test_no_archive_links_elsewhere(tmp_path: Path, kind: bytes, link: str) -> None:
    """Links and devices in a tar lead nowhere outside of the batch's directory."""
    assert fetched(tmp_path, "gs://b/x.tgz", tarred("link", kind, link)) == []
    links = [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert [path for path in links if tmp_path not in path.resolve().parents] == []


@pytest.mark.parametrize("content", ["zeros", "many"])
@pytest.mark.parametrize("form", ["zip", "tar.gz"])
def test_no_archive_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, content: str) -> None:
    """An archive that holds far more than it weighs, in bytes or in files, is refused before any of it is written."""
    monkeypatch.setattr(fetching, "MOST_BYTES", 2**20)
    monkeypatch.setattr(fetching, "MOST_MEMBERS", 100)
    source = tmp_path / "source"
    source.mkdir()
    if content == "zeros":
        (source / "zeros").write_bytes(b"\0" * 64 * 2**20)
    else:
        for number in range(200):
            (source / str(number)).touch()
    kind, ending = {"zip": ("zip", "zip"), "tar.gz": ("gztar", "tar.gz")}[form]
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), kind, source)).read_bytes()
    inside = tmp_path / "batch"
    inside.mkdir()
    with pytest.raises(FileNotThereError, match=r"Cannot unpack .*: it holds more than"):
        fetch({"pysparkBatch": {"archiveUris": [f"gs://b/x.{ending}"]}}, Storage(**{f"x.{ending}": packed}), inside)
    assert [path.name for path in inside.iterdir()] == ["archives"]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("form", ["zip", "gztar", "xztar", "bztar"])
def test_a_damaged_archive_is_said_to_be_one(tmp_path: Path, form: str, cut: float) -> None:
    """An archive that is cut off fails its batch with a sentence that names it."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "noise").write_bytes(os.urandom(100_000))
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), form, source)).read_bytes()
    inside = tmp_path / "batch"
    inside.mkdir()
    content = packed[: int(len(packed) * cut)]
    with pytest.raises(FileNotThereError, match=r"Cannot unpack gs://b/x"):
        fetch({"pysparkBatch": {"archiveUris": ["gs://b/x"]}}, Storage(x=content), inside)


def test_names_are_not_looked_for_in_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which buckets a batch names is read from archives too, but neither from huge nor from damaged files in them."""
    monkeypatch.setattr(mirror, "LARGEST_READ", 1000)
    whole, damaged = tmp_path / "whole.jar", tmp_path / "damaged.jar"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("small", "gs://small")
        archive.writestr("huge", "gs://huge" + "\0" * 1000)
    damaged.write_bytes(whole.read_bytes().replace(b"gs://small", b"gs://other"))
    assert named_buckets(["small", "huge", "other", "said"], "gs://said", [damaged, whole]) == ["small", "said"]


@pytest.mark.parametrize("alias", ["..", "../x", "/tmp/accel-out", "../../out", ".", "a\0b"])  # noqa: S108 - not made
def test_no_alias_leads_elsewhere(tmp_path: Path, alias: str) -> None:
    """The name behind an archive's ``#`` is a directory within the batch's own."""
    assert fetched(tmp_path, f"gs://b/x.zip#{alias}", zipped("good")) == []


@pytest.mark.parametrize("uri", ["gs://b/..", "gs://b/a/..", "gs://b/", "gs://b/a%2F..%2F..%2Fx", "gs://b/a\0b"])
def test_no_file_of_a_batch_lies_elsewhere(tmp_path: Path, uri: str) -> None:
    """A batch's file with a name that is none is not there, as the batch says."""
    inside = tmp_path / "batch"
    inside.mkdir()
    with pytest.raises(FileNotThereError):
        fetch({"pysparkBatch": {"mainPythonFileUri": uri}}, Storage(**{"..": b"x", "a/..": b"x", "a\0b": b"x"}), inside)
    assert outside(tmp_path, inside) == []


def test_no_object_lies_outside_its_buckets_view(tmp_path: Path) -> None:
    """Objects whose names are no paths within their bucket are left out of what Spark sees."""
    names = (*ASTRAY, "a\0b", "a//b", "good", "good/also", "dir/", "\u202e", "..x")
    view = Mirror(Storage(**dict.fromkeys(names, b"x")), tmp_path / "view", ["acme"])
    view.fill()
    inside = tmp_path / "view"
    assert outside(tmp_path, inside) == []
    assert {path.name for path in (inside / "acme").iterdir()} == {"good", "dir", "\u202e", "..x"}


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("gs://b/..", "file"),
        ("gs://b/a/.ready", "ready"),
        ("gs://b/-c", "c"),
        ("gs://b/a\0b.py", "a_b.py"),
        ("gs://b/" + "x" * 900 + ".jar", "x" * 96 + ".jar"),
        ("gs://b/jobs/score.py", "score.py"),
    ],
)
def test_copies_stay_in_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, name: str) -> None:
    """A copy of an object lies in a folder of its own under a name that cannot lead out of it."""

    class Session:
        """A Google in which every object is there."""

        def request(self, *_: Any, **__: Any) -> dict[str, str]:
            return {"generation": "1"}

        def endpoint(self, _: str) -> None:
            return None

        def download(self, _: str, path: Path) -> None:
            path.write_text("x")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    copy = local(Session(), uri)
    assert copy.name == name
    assert copy.read_text() == "x"
    assert copy.resolve().parent.parent.parent.parent == tmp_path
