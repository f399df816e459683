#!/usr/bin/env bash
# Installs Debian packages without letting one of them start a service or timer, or start it at the next boot.
#
#   .ci/apt-install.sh PACKAGE...        as root, on Debian or one of its children
set -euo pipefail

if ! command -v apt-get >/dev/null; then
    echo "apt-install: there is no apt-get here; install by hand: $*" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "apt-install: this needs root; install by hand: $*" >&2
    exit 1
fi

# invoke-rc.d, which packages start their services by, asks this file first; 101 means no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
enabled() { find /etc/systemd/system '(' -name '*.service' -o -name '*.timer' ')' 2>/dev/null | sort; }
before=$(enabled)

export DEBIAN_FRONTEND=noninteractive
echo "apt-install: $*"
apt-get -qq update
apt-get -qq -o Dpkg::Use-Pty=0 install --no-install-recommends "$@" </dev/null >/dev/null

# What the packages have set to start at boot is taken back.
comm -13 <(printf '%s\n' "$before") <(enabled) | while read -r link; do
    if [ -L "$link" ]; then rm -f "$link"; fi
done
