#!/usr/bin/env bash
# Sees to it that the tests find a Redis, says which, and runs a command.
#
#   .ci/with-redis.sh COMMAND...
#
# The tests start their servers themselves and end them (alloc/alloctest); this script brings what they
# start. redis-server or valkey-server has to be on PATH in any case, for the tests that kill a server of
# their own and start it again; as root on Debian, redis-server is installed. All other tests share
#
#   EVENPOOL_TEST_REDIS=URL     a running server, or else
#   EVENPOOL_TEST_STORE=docker  a container of the image that .ci/redis-image.sh makes
#   EVENPOOL_TEST_STORE=server  a process of that program
#   EVENPOOL_TEST_STORE=auto    (default) docker where an engine answers, else server
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'redis for the tests: %s\n' "$*" >&2; }

program() { command -v redis-server || command -v valkey-server; }

if ! program >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "none here; installing redis-server with apt-get"
    .ci/apt-install.sh redis-server >&2
fi
if ! program >/dev/null; then
    say "neither redis-server nor valkey-server is on PATH; install one (Debian: apt-get install redis-server)"
    exit 1
fi

if [ -n "${EVENPOOL_TEST_REDIS:-}" ]; then
    say "the one at EVENPOOL_TEST_REDIS; $(program) where a test needs its own"
    exec "$@"
fi
case "${EVENPOOL_TEST_STORE:-auto}" in
    server) ;;
    docker) .ci/redis-image.sh >&2 ;;
    auto)
        if .ci/redis-image.sh >&2; then EVENPOOL_TEST_STORE=docker; else EVENPOOL_TEST_STORE=server; fi ;;
    *)
        say "EVENPOOL_TEST_STORE=$EVENPOOL_TEST_STORE is none of docker, server, auto"
        exit 2 ;;
esac
export EVENPOOL_TEST_STORE
say "EVENPOOL_TEST_STORE=$EVENPOOL_TEST_STORE, $(program)"
exec "$@"
