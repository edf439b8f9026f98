# The command `bentpipe`, for CI. Build it first (`make command`), then, in the root of the repository:
#
#     podman build -f packaging/Containerfile.command -t bentpipe .
#     podman run --rm bentpipe run geo
#     podman run --rm --device /dev/net/tun --security-opt unmask=/proc/sys bentpipe shell geo -- curl http://example.com/
#
# Docker needs for `shell`: --device /dev/net/tun --security-opt seccomp=unconfined --security-opt systempaths=unconfined
#
# The user is not root, and needs no capability: docs/howto/ci.md says what the host must allow. Put your own program into an image
# that begins with this one. `scripts/try-command-container` builds it, and fetches a page from behind a link.
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl iproute2 iputils-ping nftables passt \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home bentpipe
COPY out/command/bentpipe /usr/bin/bentpipe
USER bentpipe
WORKDIR /home/bentpipe
ENTRYPOINT ["/usr/bin/bentpipe"]
CMD ["doctor"]
