#!/usr/bin/env python3
"""A second reader of the journal that shares no code with the store.

reader.py FOLDER prints JSON: per stream the sequences and a hash of each payload, and the counts of
facts by kind. It trusts nothing: header and payload checksums, salts, the chain, the order of facts
and each fact's own checksum must hold, else it exits with 1. docs/internals/journal-format.md and
docs/internals/facts.md are its specification.
"""
import hashlib
import json
import os
import struct
import sys

TABLE = []
for number in range(256):
    for _ in range(8):
        number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)


def crc32c(data, seed=0):
    state = ~seed & 0xFFFFFFFF
    for byte in data:
        state = (state >> 8) ^ TABLE[(state ^ byte) & 0xFF]
    return ~state & 0xFFFFFFFF


class Wrong(Exception):
    pass


def demand(condition, text):
    if not condition:
        raise Wrong(text)


def varint(data, at):
    value = shift = 0
    while True:
        demand(at < len(data), "a number ends behind its fact")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def text(data, at):
    size, at = varint(data, at)
    demand(at + size <= len(data), "a text ends behind its fact")
    return data[at:at + size], at + size


def facts_of(payload, count):
    at = 0
    for _ in range(count):
        size, at = varint(payload, at)
        fact = payload[at:at + size]
        demand(len(fact) == size and size > 4, "a fact ends behind its batch")
        demand(crc32c(fact[:-4]) == struct.unpack("<I", fact[-4:])[0], "a fact's checksum")
        yield fact[:-4]
        at += size
    demand(at == len(payload), "bytes behind the last fact")


def segment_header(data, name):
    demand(data[:8] == b"HAPAXSEG", name + ": magic")
    demand(crc32c(data[:60]) == struct.unpack_from("<I", data, 60)[0], name + ": header checksum")
    number, salt, first = struct.unpack_from("<IQQ", data, 12)
    chain = struct.unpack_from("<I", data, 48)[0]
    return number, salt, first, chain


def batches_of(data, salt, chain, lsn, end_lsn, name):
    """Valid batches up to end_lsn (None: up to the first bytes that are no batch)."""
    at = 64
    while end_lsn is None or lsn < end_lsn:
        head = data[at:at + 64]
        valid = len(head) == 64 and head[:4] == b"HXB1"
        valid = valid and crc32c(head[:60]) == struct.unpack_from("<I", head, 60)[0]
        if not valid:
            demand(end_lsn is None, f"{name} offset {at}: no batch before fact {end_lsn}")
            return
        its_salt, first, count, length = struct.unpack_from("<QQII", head, 8)
        log_time, its_chain = struct.unpack_from("<qI", head, 40)
        payload = data[at + 64:at + 64 + length]
        checksum = struct.unpack_from("<I", data, at + 64 + length)[0]
        if crc32c(payload, struct.unpack_from("<I", head, 60)[0]) != checksum:
            demand(end_lsn is None, f"{name} offset {at}: payload checksum")
            return
        demand(its_salt == salt, f"{name} offset {at}: salt of another segment")
        demand(its_chain == chain, f"{name} offset {at}: the chain is broken")
        demand(first == lsn, f"{name} offset {at}: fact {first}, expected {lsn}")
        yield payload, count, log_time
        chain = checksum
        lsn += count
        at = (at + 64 + length + 4 + 7) // 8 * 8


KIND_STREAM_MADE, KIND_RECORD = 1, 4


def note(fact, found):
    kind = fact[0]
    found["facts"][str(kind)] = found["facts"].get(str(kind), 0) + 1
    if kind == KIND_STREAM_MADE:
        uid, at = varint(fact, 1)
        name, _ = text(fact, at)
        found["names"][uid] = name.decode("utf-8", "replace")
    elif kind == KIND_RECORD:
        uid, at = varint(fact, 1)
        sequence, at = varint(fact, at)
        at += 16 + 16 + 4  # id hash, fingerprint, window
        _, at = varint(fact, at)  # group hash
        record_id, at = text(fact, at)
        records = found["records"].setdefault(uid, [])
        expected = records[-1][0] + 1 if records else sequence
        demand(sequence == expected, f"stream {uid}: record {sequence}, expected {expected}")
        digest = hashlib.sha256(fact[at:]).hexdigest()[:16]  # the rest, payload included
        records.append((sequence, record_id.decode("latin-1"), digest))


def read(folder):
    names = sorted(n for n in os.listdir(folder) if n.startswith("journal-") and n.endswith(".log"))
    segments = []
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        segments.append((name, data) + segment_header(data, name))
    found = {"facts": {}, "names": {}, "records": {}, "last_lsn": 0}
    for index, (name, data, _, salt, first, chain) in enumerate(segments):
        end = segments[index + 1][4] if index + 1 < len(segments) else None
        lsn = first
        for payload, count, _ in batches_of(data, salt, chain, lsn, end, name):
            for fact in facts_of(payload, count):
                note(fact, found)
            lsn += count
            found["last_lsn"] = lsn - 1
    return found


def main():
    try:
        found = read(sys.argv[1])
    except Wrong as wrong:
        print(f"reader: {wrong}", file=sys.stderr)
        return 1
    streams = {found["names"].get(uid, str(uid)): records
               for uid, records in sorted(found["records"].items())}
    json.dump({"last_lsn": found["last_lsn"], "facts": found["facts"], "streams": streams},
              sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
