#!/usr/bin/env bash
# Runs parts of the tests, which are targets of make, one after the other. The last lines name each part
# with its time. The first part that fails ends the run.
set -uo pipefail
cd "$(dirname "$0")/.."

table() {
	printf '\n%-24s %8s  %s\n' part seconds result
	printf '%s' "$rows"
	[ -z "$*" ] || printf '%-24s %8s  not run\n' $(for part; do echo "$part" -; done)
	printf '%-24s %8d\n' all $SECONDS
}

rows=
trap 'table "$@"; exit 130' INT
trap 'table "$@"; exit 143' TERM
while [ $# -gt 0 ]; do
	part=$1 start=$SECONDS
	shift
	printf '\n== %s\n' "$part"
	make --no-print-directory "$part" && result=passed || result=failed
	rows+=$(printf '%-24s %8d  %s' "$part" $((SECONDS - start)) $result)$'\n'
	if [ $result = failed ]; then
		table "$@"
		exit 1
	fi
done
table
