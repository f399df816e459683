#!/usr/bin/env bash
# Sees to it that the tests find a Redis, says which, and runs a command.
#
#   .ci/with-redis.sh COMMAND...
#
# The tests start their own servers (alloc/alloctest); this script only brings what they start:
#
#   EVENPOOL_TEST_REDIS=URL     that server, a running one; nothing is brought
#   EVENPOOL_TEST_STORE=docker  a container of the image that .ci/redis-image.sh makes
#   EVENPOOL_TEST_STORE=server  redis-server or valkey-server from PATH; as root on Debian it is installed
#   EVENPOOL_TEST_STORE=auto    (default) docker where an engine answers and the image can be made, else server
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'redis for the tests: %s\n' "$*" >&2; }

server() { command -v redis-server || command -v valkey-server; }

# As the tests see containers: no reaper, whose image would have to be pulled, and the published port on
# loopback. (testcontainers-go asks the bridge's gateway instead where it believes to be in a container.)
use_docker() {
    .ci/redis-image.sh >&2 || return
    export EVENPOOL_TEST_STORE=docker
    export TESTCONTAINERS_RYUK_DISABLED="${TESTCONTAINERS_RYUK_DISABLED:-true}"
    export TESTCONTAINERS_HOST_OVERRIDE="${TESTCONTAINERS_HOST_OVERRIDE:-127.0.0.1}"
    say "a container of ${EVENPOOL_TEST_REDIS_IMAGE:-evenpool-test-redis:local}"
}

use_server() {
    if ! server >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "none here; installing redis-server with apt-get"
        .ci/apt-install.sh redis-server >&2
    fi
    if ! server >/dev/null; then
        say "none here. Install redis-server (Debian: apt-get install redis-server) or valkey-server," \
            "or name a running one: EVENPOOL_TEST_REDIS=redis://127.0.0.1:6379/15" >&2
        return 1
    fi
    export EVENPOOL_TEST_STORE=server
    say "$(server)"
}

if [ -n "${EVENPOOL_TEST_REDIS:-}" ]; then
    say "the one at EVENPOOL_TEST_REDIS"
else
    case "${EVENPOOL_TEST_STORE:-auto}" in
        docker) use_docker ;;
        server) use_server ;;
        auto) use_docker || use_server ;;
        *) say "EVENPOOL_TEST_STORE=$EVENPOOL_TEST_STORE is none of docker, server, auto"; exit 2 ;;
    esac
fi
exec "$@"
