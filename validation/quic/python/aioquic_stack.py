"""aioquic with its defaults (NewReno), except for flow control. Requests and options as in ../rust/src/lib.rs.

Option `unpaced`: without its pacer.
"""

import asyncio
import os
import ssl
import sys
import time

from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.recovery import QuicPacketPacer

OPTIONS = set(filter(None, os.environ.get("QUIC_STACK_OPTIONS", "").split(",")))
WINDOW = 24_000_000
USAGE = "usage: serve ADDRESS CERTIFICATE KEY | fetch ADDRESS BYTES AUTHORITY"

if unknown := OPTIONS - {"unpaced"}:
    sys.exit(f"this stack has no option `{min(unknown)}`")
if "unpaced" in OPTIONS:
    # A pacer that has no rate delays nothing.
    QuicPacketPacer.update_rate = lambda *_, **__: None


def configuration(is_client):
    return QuicConfiguration(
        is_client=is_client, alpn_protocols=["measure"], max_data=WINDOW, max_stream_data=WINDOW, server_name="server"
    )


async def answer(reader, writer):
    request = await reader.readexactly(8)
    writer.write(bytes(int.from_bytes(request)))
    writer.write_eof()


async def run_server(at, certificate, key):
    settings = configuration(False)
    settings.load_cert_chain(certificate, key)
    # The loop holds only a weak reference to a task.
    tasks = set()

    def handler(reader, writer):
        task = asyncio.ensure_future(answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    host, port = at.rsplit(":", 1)
    await serve(host, int(port), configuration=settings, stream_handler=handler)
    await asyncio.Event().wait()


async def fetch(source, count, authority):
    settings = configuration(True)
    settings.load_verify_locations(authority)
    settings.verify_mode = ssl.CERT_REQUIRED
    host, port = source.rsplit(":", 1)
    start = time.monotonic()
    async with connect(host, int(port), configuration=settings) as client:
        reader, writer = await client.create_stream()
        writer.write(count.to_bytes(8))
        writer.write_eof()
        had = 0
        while chunk := await reader.read(1 << 20):
            had += len(chunk)
        if had != count:
            sys.exit(f"error: {had} of {count} bytes arrived")
        print(f"{time.monotonic() - start:.3f}")


match sys.argv[1:]:
    case ["serve", at, certificate, key]:
        asyncio.run(run_server(at, certificate, key))
    case ["fetch", source, count, authority]:
        asyncio.run(fetch(source, int(count), authority))
    case _:
        sys.exit(USAGE)
