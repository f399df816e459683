#!/usr/bin/env bash
# Lists each promise of .ci/promises.txt with the tests that hold it, and fails where one has none. A test
# holds the promises that its name begins with: TestP7_R13_LogIsPrintable holds P7 and R13. Tests of no
# promise in the list are named too: a mistyped one would count for nothing.
#
#   .ci/promises.sh [DIRECTORY]    the tree to look at; this one by default
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

{ grep -rhoE --include='*_test.go' '^func (Test|Fuzz)([A-Z][0-9]+_)+[A-Za-z0-9_]*\(' . || true; } |
    sed -E 's/^func //; s/\($//' | sort -u |
    awk '
        NR == FNR {
            if ($0 ~ /^[A-Z][0-9]+ /) { order[++n] = $1; $1 = ""; text[order[n]] = substr($0, 2) }
            next
        }
        {
            rest = $0
            sub(/^(Test|Fuzz)/, "", rest)
            while (match(rest, /^[A-Z][0-9]+_/)) {
                promise = substr(rest, 1, RLENGTH - 1)
                rest = substr(rest, RLENGTH + 1)
                tests[promise] = tests[promise] "\n      " $0
                if (!(promise in text)) { unknown++; print "no such promise: " promise " of " $0 }
            }
        }
        END {
            for (i = 1; i <= n; i++) {
                p = order[i]
                print p "  " text[p] (p in tests ? tests[p] : "\n      NO TEST")
                if (!(p in tests)) { missing++; names = names " " p }
            }
            printf "%d promises, %d without a test%s\n", n, missing, missing ? ":" names : ""
            exit missing > 0 || unknown > 0 || n == 0
        }' .ci/promises.txt -
