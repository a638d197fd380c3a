"""Zip files: where each member lies, once the whole directory has been found sound; and writing them.

Members are stored, or deflated. A few bytes of a deflated one may stand for any number, so that what they all become
is bounded by the size of the file.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from graphc.files.contents import Refuse, exactly, printable

DAMAGED = "failed reading zip archive: {what}"
KINDS = "it is compressed in a way that is not read here. Remedy: zip the file again, without compression or deflated"
INFLATED = (
    "the compressed members would become {size:,} bytes, at most {most:,} are read from such a small file. Remedy: zip "
    "the file again without compression"
)
INFLATED_TO, GROWTH = 2**24, 64  # bytes that deflated members may become, and how many for each byte of the file more
MEMBERS = 1_000_000
_HEADER = struct.Struct("<4sHHHHHIIIHH")  # of a member: ..., length of its name, of what is extra
_LOCAL = b"PK\x03\x04"
_UTF8, _ENCRYPTED = 0x800, 0x1
_LARGE = 2**31 - 1


class Member(NamedTuple):
    """The bytes of a member, and their CRC-32; 0 if the writer has not computed it.

    packed: how many bytes the member takes in the file if it is deflated; None if it lies there as it is.
    """

    start: int
    size: int
    crc: int
    packed: int | None = None


def members(file: IO[bytes], refuse: Refuse) -> dict[str, Member]:
    """The members of a seekable file by name, in the order in which they lie in it.

    Raises what `refuse` makes of (problem, place) unless each has a name of its own that stays inside the archive, is
    stored or deflated, and lies in the file where no other does.
    """
    damaged = _damaged(refuse)
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
        place = printable(name)
        if "\\" in name or "\0" in name or ".." in name.split("/") or name[:1] in ("", "/"):
            raise damaged("the name of a member leads out of it", place)
        if name in found:
            raise damaged("two members of one name", place)
        if entry.flag_bits & _ENCRYPTED:
            raise damaged("it is encrypted", place)
        deflated = entry.compress_type == zipfile.ZIP_DEFLATED
        if not deflated and entry.compress_type != zipfile.ZIP_STORED:
            raise refuse(KINDS, place)
        if not deflated and entry.compress_size != entry.file_size:
            raise damaged("it is stored, and has two sizes", place)
        if entry.header_offset < at:
            raise damaged("it overlaps another member", place)
        start = _start(file, entry, place, damaged)
        at = start + entry.compress_size
        if at > end:
            raise damaged("it reaches beyond the members", place)
        found[name] = Member(start, entry.file_size, entry.CRC, entry.compress_size if deflated else None)
    inflated, most = sum(m.size for m in found.values() if m.packed is not None), INFLATED_TO + GROWTH * end
    if inflated > most:
        raise refuse(INFLATED.format(size=inflated, most=most), "")
    return found


def _damaged(refuse: Refuse) -> Refuse:
    return lambda what, place: refuse(DAMAGED.format(what=what), place)


def _start(file: IO[bytes], entry: zipfile.ZipInfo, place: str, damaged: Refuse) -> int:
    """Where the bytes of a member start: its header there says so, and must be about the same member."""
    file.seek(entry.header_offset)
    header = _HEADER.unpack(exactly(file, _HEADER.size, damaged, place))
    names, extra = header[-2:]
    encoded = entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
    if header[0] != _LOCAL or names != len(encoded) or exactly(file, names, damaged, place) != encoded:
        raise damaged("its header is about another member", place)
    return entry.header_offset + _HEADER.size + names + extra


def content(file: IO[bytes], member: Member, name: str, refuse: Refuse) -> bytearray:
    """The bytes of a member, in memory that may be written."""
    damaged = _damaged(refuse)
    file.seek(member.start)
    found = exactly(file, member.size if member.packed is None else member.packed, damaged, printable(name))
    if member.packed is not None:
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            found = bytearray(unpacking.decompress(found, member.size + 1))
        except zlib.error as error:
            raise damaged(f"its bytes do not unpack ({error})", printable(name)) from None
        if len(found) != member.size or unpacking.unused_data:
            raise damaged("its bytes unpack to another number of bytes", printable(name))
    if member.crc and zlib.crc32(found) != member.crc:
        raise damaged("its bytes do not have their checksum", printable(name))
    return found


class _Stream:
    """Only the `write` of a file: the seeks of some, such as those that compress, do not do all that they say."""

    def __init__(self, file: Any):
        self.write = file.write

    def flush(self) -> None:
        """Left to who owns the file."""


def write(file: Any, contents: Iterable[tuple[str, Any]], alignment: int) -> None:
    """Write members to a file, or what has a `write`. Each starts at a multiple of `alignment`, and has no date.

    contents  name and bytes of each, or other memory of bytes
    """
    with zipfile.ZipFile(_Stream(file), "w", zipfile.ZIP_STORED) as archive:  # type: ignore[reportArgumentType]
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
