#!/bin/bash
# Checks the units of this folder as systemd reads them. Nothing is installed and
# nothing outside a temporary directory is written. Any word of systemd-analyze
# verify is a failure: it ends with 0 for keys that it does not know.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v systemd-analyze >/dev/null; then
	echo "verify.sh: no systemd-analyze here (Debian: apt-get install systemd)" >&2
	exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# verify wants ExecStart's file to exist, so the unit is checked with another path.
mkdir -p "$scratch/bin" "$scratch/etc"
printf '#!/bin/sh\n' >"$scratch/bin/evenpool"
chmod +x "$scratch/bin/evenpool"
sed "s|/usr/local/bin/|$scratch/bin/|" evenpool.service >"$scratch/evenpool.service"

said=$(systemd-analyze verify --recursive-errors=no --man=no "$scratch/evenpool.service" 2>&1) || said="$said (exit status $?)"
if [ -n "$said" ]; then
	echo "systemd-analyze verify says about evenpool.service:" >&2
	echo "$said" >&2
	exit 1
fi
echo "evenpool.service: verify has nothing to say"

if ! said=$(systemd-analyze security --offline=true --threshold=20 "$scratch/evenpool.service" 2>&1); then
	echo "$said" >&2
	exit 1
fi
echo "evenpool.service: ${said##*$'\n'}"

if ! said=$(systemd-sysusers --root="$scratch" "$PWD/evenpool.sysusers.conf" 2>&1); then
	echo "$said" >&2
	exit 1
fi
if ! grep -q '^evenpool:.*:/var/lib/evenpool:' "$scratch/etc/passwd"; then
	echo "evenpool.sysusers.conf makes no user evenpool" >&2
	exit 1
fi
echo "evenpool.sysusers.conf: makes the user and group evenpool"
