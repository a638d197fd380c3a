"""Zip files of stored members: where each lies, once the whole directory has been found sound; and writing them.

Compressed members are not read: a few of their bytes may stand for any number.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from graphc.files.contents import Refuse, exactly

DAMAGED = "failed reading zip archive: {what}"
COMPRESSED = (
    "its member {name!r} is compressed, and a few bytes of it could stand for any number. Remedy: zip it again "
    "without compression"
)
MEMBERS = 1_000_000
_HEADER = struct.Struct("<4sHHHHHIIIHH")  # of a member: ..., length of its name, of what is extra
_LOCAL = b"PK\x03\x04"
_DIRECTORY_ENTRY = 46  # bytes, at least
_UTF8, _ENCRYPTED = 0x800, 0x1
_LARGE = 2**31 - 1


class Member(NamedTuple):
    """The bytes of a member, and their CRC-32; 0 if the writer has not computed it."""

    start: int
    size: int
    crc: int


def members(file: IO[bytes], refuse: Refuse) -> dict[str, Member]:
    """The members of a seekable file by name, in the order in which they lie in it.

    Raises what `refuse` makes of (problem, place) unless each has a name of its own that stays inside the archive, is
    stored as it is, and lies in the file where no other does.
    """

    def damaged(what: str, place: str) -> Exception:
        return refuse(DAMAGED.format(what=what), place)

    try:
        with zipfile.ZipFile(file) as archive:
            listed, end = archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, OSError, ArithmeticError, ValueError, struct.error) as error:
        raise damaged(f"failed finding central directory ({error})", "") from None
    if len(listed) > MEMBERS:
        raise damaged(f"{len(listed):,} members, at most {MEMBERS:,} are read", "")
    found: dict[str, Member] = {}
    at = 0
    for entry in sorted(listed, key=lambda entry: entry.header_offset):
        name = entry.orig_filename
        if not _is_inside(name):
            raise damaged(f"a member named {name[:100]!a}, which leads out of it", "")
        if name in found:
            raise damaged("two members of one name", name)
        if entry.flag_bits & _ENCRYPTED:
            raise damaged("it is encrypted", name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise refuse(COMPRESSED.format(name=name), name)
        if entry.header_offset < at:
            raise damaged("it overlaps another member", name)
        start = _start(file, entry, damaged)
        at = start + entry.file_size
        if at > end:
            raise damaged("it reaches beyond the members", name)
        found[name] = Member(start, entry.file_size, entry.CRC)
    return found


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return not any(c in name for c in "\\\0:") and ".." not in parts and bool(parts[0])


def _start(file: IO[bytes], entry: zipfile.ZipInfo, damaged: Refuse) -> int:
    """Where the bytes of a member start: its header there says so, and must be about the same member."""
    name = entry.orig_filename
    file.seek(entry.header_offset)
    header = _HEADER.unpack(exactly(file, _HEADER.size, damaged, name))
    names, extra = header[-2:]
    encoded = name.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
    if header[0] != _LOCAL or names != len(encoded) or exactly(file, names, damaged, name) != encoded:
        raise damaged("its header is about another member", name)
    return entry.header_offset + _HEADER.size + names + extra


def content(file: IO[bytes], member: Member, name: str, refuse: Refuse) -> bytearray:
    """The bytes of a member, in memory that may be written."""

    def damaged(what: str, place: str) -> Exception:
        return refuse(DAMAGED.format(what=what), place)

    file.seek(member.start)
    found = exactly(file, member.size, damaged, name)
    if member.crc and zlib.crc32(found) != member.crc:
        raise damaged("its bytes do not have their checksum", name)
    return found


def write(file: Any, contents: Iterable[tuple[str, Any]], alignment: int) -> None:
    """Write members to a file, or what has a `write`. Each starts at a multiple of `alignment`, and has no date.

    contents  name and bytes of each, or other memory of bytes
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        at = 0
        for name, data in contents:
            entry = zipfile.ZipInfo(name)  # of 1980: the same content makes the same file
            size, length = memoryview(data).nbytes, len(name.encode())
            large = 20 if size * 1.05 > _LARGE else 0  # zipfile then adds as many bytes
            padding = -(at + _HEADER.size + length + 4 + large) % alignment
            entry.extra = struct.pack("<2sH", b"FB", padding) + bytes(padding)
            archive.writestr(entry, data)
            at = archive.start_dir


def is_zipped(start: bytes) -> bool:
    """Whether a file that starts so is a zip file with members."""
    return start.startswith(_LOCAL)


def size_of(file: IO[bytes]) -> int:
    """The size of a seekable file, in which the position is lost."""
    return file.seek(0, os.SEEK_END)
