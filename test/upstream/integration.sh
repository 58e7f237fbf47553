#!/usr/bin/env bash
# integration.sh build FOLDER COLLECTOR builds upstream's integration tests of its garbage collector, with the
# package COLLECTOR in place of upstream's, and the etcd that they start.
# integration.sh run FOLDER SIDE ONLY runs those whose names match ONLY. The last line is the summary.
set -euo pipefail
action=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)

build() {
	local collector=$1 separator='{"Replace":{' tests
	mkdir -p "$folder"
	cd "$here/e2e"
	tests=$(go list -f '{{.Dir}}' -m k8s.io/kubernetes)/test/integration/garbagecollector
	for file in "$tests"/*_test.go; do
		file=$(basename "$file")
		sed "s,\"k8s.io/kubernetes/pkg/controller/garbagecollector\",\"$collector\"," "$tests/$file" >"$folder/$file"
		printf '%s"%s":"%s"' "$separator" "$here/e2e/integration/$file" "$folder/$file"
		separator=,
	done >"$folder/overlay.json"
	echo '}}' >>"$folder/overlay.json"
	go test -c -ldflags "$KUBE_FLAGS" -overlay "$folder/overlay.json" -o "$folder/garbagecollector.test" ./integration
	go build -ldflags '-s -w' -o "$folder/etcd" go.etcd.io/etcd/server/v3
}

# The tests find files of the Kubernetes module by TEST_SRCDIR and TEST_WORKSPACE, for they are built with -trimpath.
run() {
	local side=$1 only=$2 code=0 passed all
	cd "$folder"
	rm -rf garbage-collector-*
	TEST_SRCDIR=$(go env GOMODCACHE) TEST_WORKSPACE=. PATH=$folder:$PATH EXEUNT_LOGS=$folder \
		./garbagecollector.test -test.v -test.timeout 30m -test.run "$only" >log 2>&1 || code=$?
	grep '^--- ' log || tail log
	passed=$(grep -c '^--- PASS' log || true) all=$(grep -c '^=== RUN' log || true)
	echo "e2e-garbage-integration: $side, $passed of $all tests passed"
	[ "$code" -eq 0 ] && [ "$all" -gt 0 ]
}

"$action" "${@:3}"
