#!/usr/bin/env python3
"""Packs corpora into seeds/TARGET.hex, an input per line, and unpacks them into corpus/TARGET again.

usage: seeds.py unpack | pack TARGET FOLDER [most]
"""
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def unpack():
    for seeds in sorted((HERE / "seeds").glob("*.hex")):
        folder = HERE / "corpus" / seeds.stem
        folder.mkdir(parents=True, exist_ok=True)
        for line in seeds.read_text().split():
            data = bytes.fromhex(line)
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(target, folder, most):
    inputs = sorted({path.read_bytes() for path in pathlib.Path(folder).iterdir()}, key=lambda data: (len(data), data))
    # Evenly over the lengths: short inputs stop early, long ones reach far.
    step = max(1, len(inputs) / most)
    chosen = [inputs[int(n * step)] for n in range(min(most, len(inputs)))]
    (HERE / "seeds" / f"{target}.hex").write_text("".join(data.hex() + "\n" for data in chosen if data))


if sys.argv[1:] == ["unpack"]:
    unpack()
elif len(sys.argv) in (4, 5) and sys.argv[1] == "pack":
    pack(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) == 5 else 200)
else:
    sys.exit(__doc__)
