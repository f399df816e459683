#!/usr/bin/env bash
# Makes the Docker image that the tests run through testcontainers-go, from the redis-server (or
# valkey-server) that is installed here: the program, the libraries that ldd names, and nothing else.
# No registry is asked. An image made from the same program by the same script is left as it is.
#
#   .ci/redis-image.sh             the image's name is $EVENPOOL_TEST_REDIS_IMAGE, or evenpool-test-redis:local
#
# Exit status: 0 the image is there and answers PING; 3 no Docker engine answers; 4 no redis-server to
# make it from; 1 anything else.
set -euo pipefail

image=${EVENPOOL_TEST_REDIS_IMAGE:-evenpool-test-redis:local}

say() { printf 'redis-image: %s\n' "$*"; }

if ! command -v docker >/dev/null || ! timeout 10 docker version >/dev/null 2>&1; then
    say "no Docker engine answers" >&2
    exit 3
fi
program=$(command -v redis-server || command -v valkey-server || true)
if [ -z "$program" ]; then
    say "no redis-server or valkey-server on PATH to make the image from" >&2
    exit 4
fi

# Two programs or two versions of this script never share an image: the label tells them apart.
made_from=$(cat "$(readlink -f "$program")" "$0" | sha256sum | cut -d ' ' -f 1)
if [ "$(docker image inspect --format '{{index .Config.Labels "evenpool.made-from"}}' "$image" 2>/dev/null)" = "$made_from" ]; then
    say "$image is there"
    exit 0
fi

root=$(mktemp -d)
container=
cleanup() {
    if [ -n "$container" ]; then docker rm -f "$container" >/dev/null 2>&1 || true; fi
    rm -rf "$root"
}
trap cleanup EXIT

mkdir -p "$root/etc" "$root/usr/bin"
mkdir -m 1777 "$root/data" "$root/tmp"
cp -L "$program" "$root/usr/bin/redis-server"
# ldd prints "NAME => PATH (ADDRESS)" for a library and "PATH (ADDRESS)" for the loader; a program that
# is linked statically has none.
{ ldd "$program" || true; } | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' |
    while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
printf 'root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

# The official image runs its arguments as options of redis-server, with protected mode off, because the
# clients come over the container's network; so does this one. Later options win: a test may still ask
# for an append-only file.
tar -C "$root" --owner=0 --group=0 --numeric-owner -c . |
    docker import \
        --change 'ENTRYPOINT ["/usr/bin/redis-server", "--protected-mode", "no", "--save", ""]' \
        --change 'EXPOSE 6379/tcp' \
        --change 'WORKDIR /data' \
        --change 'USER 65534:65534' \
        --change "LABEL evenpool.made-from=$made_from" \
        - "$image" >/dev/null

# An image that does not answer is worse than none: every test would wait for it in turn.
container=$(docker run -d -p 127.0.0.1:0:6379 "$image")
port=$(docker port "$container" 6379/tcp | head -n 1 | sed 's/.*://')
answer=
for _ in $(seq 50); do
    if { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
        printf 'PING\r\n' >&3 2>/dev/null || true
        IFS= read -r -t 2 answer <&3 || true
        exec 3>&- 3<&-
        answer=${answer%$'\r'}
        if [ "$answer" = +PONG ]; then break; fi
    fi
    sleep 0.1
done
if [ "$answer" != +PONG ]; then
    say "$image was made from $program but does not answer PING; its log:" >&2
    docker logs "$container" >&2 || true
    docker image rm -f "$image" >/dev/null 2>&1 || true
    exit 1
fi
say "$image made from $program ($("$program" --version | cut -c 1-40)) answers PING"
