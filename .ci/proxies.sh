#!/usr/bin/env bash
# Installs the real proxy servers that the prober is tried with (probe/peers_test.go starts and ends them, each
# on loopback with a configuration of its own). No service of theirs is started.
#
#   .ci/proxies.sh        as root, on Debian or one of its children, if any is missing
#
# 3proxy is not among them: Debian 12 does not have it.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin # where servers are, for users other than root too

declare -A package=([squid]=squid [tinyproxy]=tinyproxy [privoxy]=privoxy [microsocks]=microsocks [danted]=dante-server)
missing=()
for program in "${!package[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
if [ ${#missing[@]} -gt 0 ]; then .ci/apt-install.sh "${missing[@]}"; fi
for program in "${!package[@]}"; do
    command -v "$program" >/dev/null || { echo "proxies: ${package[$program]} is installed and has no $program" >&2; exit 1; }
done
