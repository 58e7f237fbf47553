#!/usr/bin/env bash
# Checks formatting, file sizes, go.mod files, workflows, the build for Windows, and lint rules. make sets the
# variables.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "checking formatting"
unformatted=$(gofmt -l $(git ls-files --cached --others --exclude-standard '*.go' | xargs ls -d 2>/dev/null))
[ -z "$unformatted" ] || { echo "not formatted, run gofmt -w on: $unformatted"; exit 1; }

# A larger file belongs into a release, not into every clone.
max=1000000
echo "checking that no file is larger than $max bytes"
large=$(git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'find "$@" -prune -type f -size +'$max'c 2>/dev/null' find || true)
[ -z "$large" ] || { echo "larger than $max bytes: $large"; exit 1; }

for module in $MODULES; do
	echo "checking go.mod and go.sum of $module"
	(cd "$module" && GOTOOLCHAIN=auto go mod tidy -diff) # that of Karpenter wants a newer Go
done
for module in cmd/kube-apiserver test/controlplane test/upstream/kube-controller-manager; do
	for version in $OLDER_KUBES; do
		echo "checking go.$version.mod of $module"
		(cd "$module" && go mod tidy -diff -modfile="go.$version.mod")
	done
done

echo "checking .github/workflows (the first time a few seconds more)"
(cd tools && go build -o "$BIN/tools/actionlint" github.com/rhysd/actionlint/cmd/actionlint)
"$BIN/tools/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml

# The system that differs most from those that the tests run on.
echo "building exeunt for Windows (the first time about a minute)"
GOOS=windows GOARCH=amd64 go build -o "$BIN/tools/exeunt.exe" ./cmd/exeunt

root=$PWD
for module in $LINTED; do
	echo "linting $module (the first time minutes, if it was not built before)"
	(cd "$module" && "$BIN/tools/golangci-lint" run --config "$root/.golangci.yml" ./...)
done
