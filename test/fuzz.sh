#!/usr/bin/env bash
# Runs every fuzz target for the time $1, one after the other. The go command instruments and compiles all
# packages for the first one, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0 failures=0
echo "fuzzing, $1 per target"
while IFS=: read -r package target; do
	count=$((count + 1))
	echo "$package $target"
	if ! (cd "$package" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel 2 .) >"$log" 2>&1; then
		failures=$((failures + 1))
		cat "$log"
	fi
done < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' cmd internal pkg test | sed 's,/[^/]*:func ,:,' | sort)
echo "fuzz: $count targets, $1 each, $failures failures"
[ $count -gt 0 ] && [ $failures -eq 0 ]
