#!/usr/bin/env bash
# Checks what was changed since the commit $1, by default since the branch left main: format, vet and lint of the
# changed packages, and their unit tests.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

base=${1:-}
for name in origin/main main; do
	[ -n "$base" ] || base=$(git merge-base "$name" HEAD 2>/dev/null || true)
done
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "there is no commit '$base': name one with BASE=commit"; exit 1; }
files=$({ git diff --name-only --diff-filter=d "$base" -- '*.go'; git ls-files --others --exclude-standard -- '*.go'; } | grep -v /testdata/ | sort -u || true)
if [ -z "$files" ]; then
	echo "no Go file was changed since $(git rev-parse --short "$base"): name an older commit with BASE=commit"
	exit 0
fi

unformatted=$(gofmt -l $files)
[ -z "$unformatted" ] || { echo "not formatted, run gofmt -w on: $unformatted"; exit 1; }

# module prints the folder of the module that has the folder $1.
module() {
	local folder=$1
	while [ ! -f "$folder/go.mod" ]; do folder=$(dirname "$folder"); done
	echo "$folder"
}
folders=$(for file in $files; do dirname "$file"; done | sort -u)
for module in $(for folder in $folders; do module "$folder"; done | sort -u); do
	packages=
	for folder in $folders; do
		[ "$(module "$folder")" != "$module" ] || packages+=" ./$(realpath --relative-to="$module" "$folder")"
	done
	echo "checking$packages of the module in $module"
	(
		cd "$module"
		go vet $packages
		"$LINT" run --config "$root/.golangci.yml" $packages
		# End-to-end tests and models have parts of their own.
		units=$(printf '%s\n' $packages | grep -v -e '^\./test/e2e' -e '^\./test/integration' -e '^\./test/model$' -e '^\./test/model/garbage$' || true)
		if [ -n "$units" ] && [ "$module" != test/node ]; then go test $units; fi
	)
done
