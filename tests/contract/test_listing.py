"""Laws of listing, for any names."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.emulator.storage.listing import Wish, list_page
from airflow_accel_provider.emulator.storage.resources import StoredObject

NAMES = st.text(alphabet="ab/-é", min_size=1, max_size=6)


def stored(name: str) -> StoredObject:
    return StoredObject(
        bucket="b",
        name=name,
        generation=1,
        metageneration=1,
        size=0,
        crc32c="",
        md5=None,
        components=None,
        content="",
        created="",
        updated="",
        fields={},
    )


def walk(names: set[str], wish: Wish) -> tuple[list[str], list[str]]:
    """Return all item names and prefixes of a listing, page by page."""
    objects = [stored(name) for name in sorted(names, key=str.encode) if name.startswith(wish.prefix)]
    items: list[str] = []
    prefixes: list[str] = []
    token: str | None = ""
    while token is not None:
        page = list_page(objects, replace(wish, page_token=token))
        assert len(page.items) + len(page.prefixes) <= wish.page_size
        items += [item.name for item in page.items]
        prefixes += page.prefixes
        token = page.next_token
    return items, prefixes


@given(
    names=st.sets(NAMES, max_size=12),
    prefix=st.sampled_from(["", "a", "a/", "-"]),
    delimiter=st.sampled_from(["", "/", "b-"]),
    page_size=st.integers(1, 5),
    show_folders=st.booleans(),
)
def test_pages_together_are_the_whole(
    names: set[str], prefix: str, delimiter: str, page_size: int, show_folders: bool
) -> None:
    """Pages of any size give what one page gives, and every object stands alone or behind one prefix."""
    wish = Wish(prefix=prefix, delimiter=delimiter, show_folders=show_folders)
    items, prefixes = walk(names, wish)
    assert walk(names, replace(wish, page_size=page_size)) == (items, prefixes)
    assert len(set(prefixes)) == len(prefixes)
    wanted = {name for name in names if name.startswith(prefix)}
    behind = {name for name in wanted if any(name.startswith(found) for found in prefixes)}
    alone = wanted - behind
    folders = behind & set(prefixes) if show_folders else set()
    assert sorted(items) == sorted(alone | folders)
    assert all(not delimiter or delimiter not in name[len(prefix) :] for name in alone)


@given(names=st.sets(NAMES, max_size=12), start=NAMES, end=NAMES)
def test_offsets_cut_by_bytes(names: set[str], start: str, end: str) -> None:
    """A listing between offsets has the names from the start to before the end, in the order of their bytes."""
    items, _ = walk(names, Wish(start=start, end=end))
    assert items == sorted((name for name in names if start.encode() <= name.encode() < end.encode()), key=str.encode)
