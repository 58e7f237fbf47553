#!/usr/bin/env bash
# apiserver.sh build FOLDER SIDE builds upstream's integration tests of custom resources, of garbage collection and of
# dry runs. With SIDE ours they start the server of cmd/kube-apiserver in their process, with stock upstream's.
# apiserver.sh run FOLDER SIDE ONLY runs those whose names match ONLY. The last line is the summary.
# KUBE_MODULES is a -modfile for an older Kubernetes.
set -euo pipefail
action=$1 folder=$2/$3 side=$3 only=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
module=$here/../../cmd/kube-apiserver
base=github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/upstream
source=$folder/src/$base
# The first has the name that upstream's tests expect as their field manager.
suites='integration integration/conversion garbagecollector dryrun'

# copy copies a folder of a module, and replaces its imports.
copy() {
	mkdir -p "$(dirname "$source/$2")"
	cp -r --no-preserve=mode "$1" "$source/$2"
	find "$source/$2" -name '*.go' -exec sed -i \
		-e "s,\"k8s.io/apiextensions-apiserver/test/integration,\"$base/integration," \
		-e "s,\"k8s.io/apiextensions-apiserver/pkg/cmd/server/testing\",\"$base/extensions\"," \
		-e "s,\"k8s.io/kubernetes/cmd/kube-apiserver/app/testing\",\"$base/server\"," {} +
}

# compose adds graceful deletion to the configuration that a copied file completes.
compose() {
	sed -i -e "s,^import (,import (\n\t\"${base%/upstream}/compose\"\n," -e "s/^\(.*\) := config.Complete()/$3\n&/" "$source/$1/$2"
	grep -q 'compose.AddGracefulDeletion' "$source/$1/$2" || { echo "$1/$2 completes no configuration"; exit 1; }
}

build() {
	local extensions kubernetes separator='{"Replace":{'
	rm -rf "$folder"
	cd "$module"
	extensions=$(go list ${KUBE_MODULES:-} -m -f '{{.Dir}}' k8s.io/apiextensions-apiserver)
	kubernetes=$(go list ${KUBE_MODULES:-} -m -f '{{.Dir}}' k8s.io/kubernetes)
	copy "$extensions/test/integration" integration
	copy "$kubernetes/test/integration/garbagecollector" garbagecollector
	copy "$kubernetes/test/integration/dryrun" dryrun
	copy "$extensions/pkg/cmd/server/testing" extensions
	copy "$kubernetes/cmd/kube-apiserver/app/testing" server
	if [ "$side" != stock ]; then
		compose extensions testserver.go '\tcompose.AddGracefulDeletion(config, \&config.GenericConfig.Config)'
		compose server testserver.go '\tcompose.AddGracefulDeletion(config.ApiExtensions, \&config.Aggregator.GenericConfig.Config)'
	fi
	for file in $(cd "$source" && find . -name '*.go'); do
		printf '%s"%s":"%s"' "$separator" "$PWD/internal/upstream/${file#./}" "$source/${file#./}"
		separator=,
	done >"$folder/overlay.json"
	echo '}}' >>"$folder/overlay.json"
	(cd "$here/e2e" && go build -ldflags '-s -w' -o "$folder/etcd" go.etcd.io/etcd/server/v3)
	for suite in $suites; do
		go test ${KUBE_MODULES:-} -c -vet=off -overlay "$folder/overlay.json" -o "$source/$suite/$(basename "$suite").test" "$base/$suite"
	done
}

# start_etcd runs etcd on TCP, for some tests dial it with TLS options, which a socket refuses.
start_etcd() {
	local port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	etcd=http://127.0.0.1:$port
	rm -rf "$folder/data"
	"$folder/etcd" --data-dir "$folder/data" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
		--listen-peer-urls http://127.0.0.1:0 --unsafe-no-fsync >"$folder/etcd.log" 2>&1 &
	trap "kill $! 2>/dev/null; wait" EXIT
	until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 $! && sleep 0.1; done
}

# The servers find their certificates by TEST_SRCDIR and TEST_WORKSPACE, for they are built with -trimpath.
run() {
	local code=0 passed=0 all=0
	start_etcd
	rm -f "$folder"/*.log.passed
	for suite in $suites; do
		local log=$folder/${suite//\//-}.log failed=0
		cd "$source/$suite"
		KUBE_INTEGRATION_ETCD_URL=$etcd TEST_SRCDIR=$folder/src TEST_WORKSPACE=. \
			"./$(basename "$suite").test" -test.v -test.timeout 40m -test.run "$only" >"$log" 2>&1 || failed=1 code=1
		grep -E '^--- FAIL' "$log" || [ "$failed" = 0 ] || tail "$log"
		grep -oE '^--- PASS: \w+' "$log" >"$log.passed" || true
		echo "$suite: $(wc -l <"$log.passed") of $(grep -cE '^=== RUN +[^/]+$' "$log") tests passed"
		passed=$((passed + $(wc -l <"$log.passed"))) all=$((all + $(grep -cE '^=== RUN +[^/]+$' "$log" || true)))
	done
	sort "$folder"/*.passed >"$folder/passed"
	if [ "$side" != stock ] && [ -f "$folder/../stock/passed" ]; then
		diff "$folder/../stock/passed" "$folder/passed" && echo 'the same tests pass as with SIDE=stock' || true
	fi
	echo "apiserver-integration: $side, $passed of $all tests passed"
	[ "$code" -eq 0 ] && [ "$all" -gt 0 ]
}

"$action"
