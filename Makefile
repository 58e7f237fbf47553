# Everything is done by the go command, git and make. The first build compiles
# etcd and kube-apiserver and takes minutes; later ones take seconds, for the go
# command rebuilds only what changed.

.DEFAULT_GOAL := help
.SHELLFLAGS := -eu -c

BIN := $(CURDIR)/bin
PROGRAMS := pv-controller provisioner garbage-collector csimock exeunt
MODULES := . test/controlplane test/manifests test/node test/node/kubernetes test/node/containerd test/upstream/kube-controller-manager test/upstream/csi-provisioner test/upstream/e2e tools tools/promtool tools/release tools/krew
# The modules that hold Go files of ours.
LINTED := . test/controlplane test/manifests test/node test/node/kubernetes test/upstream/kube-controller-manager test/upstream/e2e tools/release

# All binaries and tests are static and built alike, and the modules require the same versions, so that
# each package is compiled once; only the race detector needs its own. grpcnotrace leaves out gRPC's tracing
# pages, whose templates keep the linker from dropping unused methods: the programs are a third smaller.
BUILT_ALIKE = CGO_ENABLED=0 GOFLAGS="$$(go env GOFLAGS) -trimpath -buildvcs=false -tags=grpcnotrace"
GO_BUILD = $(BUILT_ALIKE) go build
GO_TEST = $(BUILT_ALIKE) go test
# The race detector needs a C compiler; the go command says whether it has one.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The version of our programs: the last tag, or the appVersion of the chart, and the commit.
RELEASED = $(shell awk '$$1 == "appVersion:" { print $$2 }' deploy/helm/exeunt/Chart.yaml)
DESCRIBED = $(shell git describe --always --tags --match 'v[0-9]*' --abbrev=12 2>/dev/null)
VERSION = $(if $(filter v%,$(DESCRIBED)),$(shell echo '$(DESCRIBED)' | sed 's/-\([0-9]*\)-\(g[0-9a-f]*\)$$/+\1.\2/'),$(RELEASED)+$(or $(DESCRIBED),unknown))
TREE_STATE = $(if $(shell git status --porcelain 2>/dev/null),dirty,clean)
# The minor version of the control plane. Older ones have module files of their own, and are
# built into a folder of their own.
KUBE := 1.36
OLDER_KUBES := 1.34 1.35
KUBE_MODULES = $(if $(filter $(OLDER_KUBES),$(KUBE)),-modfile=go.$(KUBE).mod)
KUBE_BIN = $(BIN)$(if $(filter $(OLDER_KUBES),$(KUBE)),/kube-$(KUBE))
# The versions of Kubernetes and of upstream's sidecar: those in go.mod.
KUBE_VERSION = $(shell cd test/controlplane && go list $(KUBE_MODULES) -m -f '{{.Version}}' k8s.io/kubernetes)
KUBE_DATE = $(shell cd test/controlplane && go list $(KUBE_MODULES) -m -f '{{with .Time}}{{.Format "2006-01-02T15:04:05Z"}}{{end}}' k8s.io/kubernetes)
SIDECAR := github.com/kubernetes-csi/external-provisioner/v6
SIDECAR_VERSION = $(shell cd test/upstream/csi-provisioner && go list -m -f '{{.Version}}' $(SIDECAR))

# version_flags sets what a Kubernetes program says of itself: the version $(1),
# the state of the tree $(2), the commit $(3) and the build date $(4).
COMPONENT := k8s.io/component-base/version
version_flags = -s -w -X $(COMPONENT).gitVersion=$(1) -X $(COMPONENT).gitTreeState=$(2) \
	-X $(COMPONENT).gitCommit=$(3) -X $(COMPONENT).buildDate=$(or $(4),1970-01-01T00:00:00Z) \
	-X $(COMPONENT).gitMajor=$(call number,1,$(1)) -X $(COMPONENT).gitMinor=$(call number,2,$(1)) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(1) -X k8s.io/client-go/pkg/version.gitCommit=$(3)
number = $(patsubst v%,%,$(word $(1),$(subst ., ,$(2))))
KUBE_FLAGS = $(call version_flags,$(KUBE_VERSION),clean,unknown,$(KUBE_DATE))
OUR_FLAGS = $(call version_flags,$(VERSION),$(TREE_STATE),$(or $(shell git rev-parse HEAD 2>/dev/null),unknown),)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: programs controlplane ## Build all programs into bin/ (the first time about 8 minutes on two cores)

.PHONY: programs
programs: ## Build only our programs: pv-controller, provisioner, garbage-collector, csimock, exeunt
	@echo "building $(PROGRAMS) $(VERSION) (the first time about a minute)"
	@$(GO_BUILD) -ldflags '$(OUR_FLAGS)' -o $(BIN)/ $(PROGRAMS:%=./cmd/%)

.PHONY: controlplane
controlplane: ## Build only the control plane for demos and tests; KUBE=1.34 or 1.35 builds an older one
	@case ' $(OLDER_KUBES) 1.36 ' in *' $(KUBE) '*) ;; *) echo 'KUBE must be one of: $(OLDER_KUBES) 1.36'; exit 1;; esac
	@echo "building controlplane, which is etcd and kube-apiserver $(KUBE_VERSION) (the first time about 7 minutes)"
	@mkdir -p $(KUBE_BIN)
	@cd test/controlplane && $(GO_BUILD) $(KUBE_MODULES) -ldflags '$(KUBE_FLAGS)' -o $(KUBE_BIN)/controlplane .

# The first build of each older version takes about three minutes, later ones seconds.
.PHONY: controlplanes
controlplanes: controlplane ## Build the control planes of all supported versions
	@for version in $(OLDER_KUBES); do $(MAKE) --no-print-directory controlplane KUBE=$$version; done

.PHONY: build-upstream
build-upstream: upstream-controller-manager upstream-provisioner ## Build the upstream programs to compare with (the first time about 5 minutes)

.PHONY: upstream-controller-manager
upstream-controller-manager: controlplane # which compiles most of it
	@echo "building upstream kube-controller-manager $(KUBE_VERSION) (the first time about 2 minutes)"
	@mkdir -p $(KUBE_BIN)/upstream
	@cd test/upstream/kube-controller-manager && \
		$(GO_BUILD) $(KUBE_MODULES) -ldflags '$(KUBE_FLAGS)' -o $(KUBE_BIN)/upstream/kube-controller-manager .

.PHONY: upstream-provisioner
upstream-provisioner:
	@echo "building upstream csi-provisioner $(SIDECAR_VERSION) (the first time about 3 minutes)"
	@cd test/upstream/csi-provisioner && \
		$(GO_BUILD) -tags '' -ldflags '-s -w -X main.version=$(SIDECAR_VERSION)' -o $(BIN)/upstream/csi-provisioner $(SIDECAR)/cmd/csi-provisioner

# The version before the journal: its provisioner put a finalizer on claims. It is built from the
# history of this repository, once per folder, with the modules of today.
LAST_VERSION := 3f387a87892a1514166cbd964aadf73eac2a3bf6
HAS_LAST_VERSION = $(shell git cat-file -t $(LAST_VERSION) 2>/dev/null)
NO_LAST_VERSION := the history lacks commit $(LAST_VERSION), the last version: run "git fetch --unshallow" for the test of upgrades
.PHONY: last-version
last-version: $(BIN)/last/$(LAST_VERSION) ## Build the last version of our controllers, to upgrade from

$(BIN)/last/$(LAST_VERSION):
	@echo "building the last version, $(LAST_VERSION) (the first time about a minute)"
	@$(if $(HAS_LAST_VERSION),,echo '$(NO_LAST_VERSION)'; exit 1)
	@rm -rf $(BIN)/last && mkdir -p $(BIN)/last/source
	@git archive $(LAST_VERSION) | tar -x -C $(BIN)/last/source
	@cp go.mod go.sum $(BIN)/last/
	@cd $(BIN)/last/source && $(GO_BUILD) -mod=mod -modfile=$(BIN)/last/go.mod -ldflags '-s -w' -o $(BIN)/last/ ./cmd/pv-controller ./cmd/provisioner
	@rm -rf $(BIN)/last/source && touch $@

.PHONY: demo
demo: build ## Build, then show the product at work on a real API server
	@$(BIN)/exeunt demo

# The test of docs fails when the demo says something else than the recording.
.PHONY: recording
recording: build ## Record `exeunt demo --slow` into docs/demo.cast, which asciinema plays (about two minutes)
	@echo "recording the demo (about two minutes)"
	@go run ./internal/asciicast/record -out docs/demo.cast $(BIN)/exeunt demo --slow

.PHONY: against-upstream
against-upstream: build build-upstream ## Play the stories with our programs and upstream's, and write docs/against-upstream.md and the table in the README (minutes; a quiet machine gives better rates)
	@go run ./internal/stories/record -page docs/against-upstream.md -readme README.md $(BIN)/exeunt demo --against=upstream

.PHONY: test
test: ## Run all tests: unit tests, those of the control plane and the manifests, end-to-end tests, the soak
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-model
	@$(MAKE) --no-print-directory test-controlplane
	@$(MAKE) --no-print-directory test-release
	@$(MAKE) --no-print-directory test-manifests
	@$(MAKE) --no-print-directory e2e
	@$(MAKE) --no-print-directory test-soak

.PHONY: test-unit
test-unit: ## Run the unit tests, with the race detector if there is a C compiler
	@$(if $(RACE),,echo "there is no C compiler: the unit tests run without the race detector")
	@echo "testing the packages (the first time about 4 minutes)"
	@packages=$$(go list ./...); go test $(RACE) -timeout 30m $$(echo "$$packages" | grep -v -e /test/e2e -e /test/integration -e /bench$$ -e /test/model$$ -e /test/model/garbage$$)

# Without the race detector: one goroutine works at a time, and there are millions of states.
.PHONY: test-model
test-model: ## Explore the small worlds of the model, walk through large ones, and find the known bugs
	@echo "exploring small worlds (about three minutes)"
	@$(GO_TEST) -count=1 -timeout 30m ./test/model ./test/model/garbage

# For how long "make model" walks at random.
RANDOM_TIME := 10m

.PHONY: model
model: mutants $(if $(ONLY)$(MUTANTS),,model-garbage) ## Explore all worlds of both models, walk at random for RANDOM_TIME, run the mutants (hours); ONLY and MUTANTS choose some of the storage model, and no walk
	@$(BIN)/model.test -test.timeout 24h -test.run 'TestDeep|TestExcuses|TestMutants|TestRandomWalks$$' -deep -only '$(ONLY)' -mutants '$(MUTANTS)' -random $(if $(ONLY)$(MUTANTS),0s,$(RANDOM_TIME)) -disturbances 150 $(if $(ONLY)$(MUTANTS),,-killed $(BIN)/mutants.killed -explored $(BIN)/model.explored)
ifeq ($(ONLY)$(MUTANTS),)
	@echo "running the unit tests with the mutants that the model does not kill (about 20 minutes)"
	@go run -overlay $(BIN)/mutants/overlay.json ./test/model/mutant/unittests -overlay $(BIN)/mutants/overlay.json -killed $(BIN)/mutants.killed -explored $(BIN)/model.explored -add $(BIN)/garbage.summary
endif

# The model of garbage collection, with mutants of its own. Its last line counts those that the unit
# tests kill, too, and is added to the last line of "make model".
.PHONY: model-garbage
model-garbage: ## Explore all clusters of the model of garbage collection, and run its mutants (about 20 minutes); GARBAGE_MUTANTS chooses some, by an expression
	@go run ./test/model/mutant/generate -set garbage -out $(BIN)/mutants-garbage
	@$(GO_TEST) -c -overlay $(BIN)/mutants-garbage/overlay.json -o $(BIN)/garbage-model.test ./test/model/garbage
	@cd test/model/garbage && $(BIN)/garbage-model.test -test.timeout 24h -test.run 'TestPromisesHold|TestMutants$$' -deep -mutants '$(GARBAGE_MUTANTS)' -killed $(BIN)/garbage.killed -explored $(BIN)/garbage.explored
ifeq ($(GARBAGE_MUTANTS),)
	@echo "running the unit tests with the mutants that the model of garbage collection does not kill"
	@go run -overlay $(BIN)/mutants-garbage/overlay.json ./test/model/mutant/unittests -overlay $(BIN)/mutants-garbage/overlay.json -killed $(BIN)/garbage.killed -explored $(BIN)/garbage.explored -summary $(BIN)/garbage.summary
endif

# All mutants are in one binary, which selects one of them when it runs.
.PHONY: mutants
mutants: mutants-overlay ## Compile the model with mutants of all decisions, into bin/model.test
	@echo "compiling the model with its mutants"
	@$(GO_TEST) -c -overlay $(BIN)/mutants/overlay.json -o $(BIN)/model.test ./test/model

.PHONY: mutants-overlay
mutants-overlay:
	@go run ./test/model/mutant/generate -out $(BIN)/mutants

.PHONY: mutants-unit
mutants-unit: mutants-overlay ## Print which mutants that the model does not kill the unit tests kill (about 20 minutes)
	@go run -overlay $(BIN)/mutants/overlay.json ./test/model/mutant/unittests -overlay $(BIN)/mutants/overlay.json -killed $(BIN)/mutants.killed

# The time of one fuzz target. The go command instruments and compiles all packages for the first one.
FUZZTIME := 10s

.PHONY: fuzz
fuzz: ## Run every fuzz target for a time, one after the other; FUZZTIME=1m sets the time of each
	@echo "fuzzing, $(FUZZTIME) per target (the first time minutes more)"
	@mkdir -p $(BIN)
	@count=0; failures=0; \
	for target in $$(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' cmd internal pkg test | sed 's,/[^/]*:func ,:,' | sort); do \
		count=$$((count + 1)); echo "$$target"; \
		go test -run '^$$' -fuzz "^$${target##*:}\$$" -fuzztime $(FUZZTIME) -parallel 2 "./$${target%%:*}" >$(BIN)/fuzz.log 2>&1 || \
			{ failures=$$((failures + 1)); cat $(BIN)/fuzz.log; }; \
	done; \
	echo "fuzz: $$count targets, $(FUZZTIME) each, $$failures failures"; \
	test $$count -gt 0 -a $$failures -eq 0

.PHONY: test-controlplane
test-controlplane: controlplane ## Test the control plane
	@echo "testing the control plane (the first time about 4 minutes)"
	@cd test/controlplane && packages=$$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...) && \
		EXEUNT_BIN=$(BIN) $(GO_TEST) -timeout 30m $$packages

.PHONY: test-manifests
test-manifests: build controlplanes promtool images upstream-controller-manager ## Test the manifests, the chart and the alerts, also on the API server, in a dry run
	@echo "testing the manifests (the first time about a minute)"
	@cd test/manifests && EXEUNT_BIN=$(BIN) $(GO_TEST) -count=1 -timeout 10m ./...

# The tag leaves out the service discovery of clouds, which no rule test needs.
.PHONY: promtool
promtool:
	@echo "building promtool, which tests the alerts (the first time about 90 seconds)"
	@cd tools/promtool && $(GO_BUILD) -tags remove_all_sd -o $(BIN)/tools/promtool github.com/prometheus/prometheus/cmd/promtool

# PACKAGES selects some. RECORD=yes keeps the results in docs/versions, instead of those that it has
# of these packages, and writes the tables of versions.
PACKAGES := ./test/integration ./test/e2e/...
RECORD :=
KUBES = $(if $(filter $(OLDER_KUBES),$(KUBE)),$(KUBE),$(OLDER_KUBES) 1.36)
# A copy without the history, such as an archive of the source, cannot build the last version.
.PHONY: e2e
e2e: build build-upstream $(if $(HAS_LAST_VERSION),last-version) $(if $(filter $(OLDER_KUBES),$(KUBE)),older-programs,controlplanes) ## Run the end-to-end tests against a real API server; KUBE=1.34 or 1.35 runs them on an older one, RECORD=yes writes the table of versions
	@echo "running the end-to-end tests on Kubernetes $(KUBE_VERSION)"
	@rm -f $(KUBE_BIN)/differential.md $(KUBE_BIN)/library.md
	@$(GO_BUILD) -o $(BIN)/record ./test/e2e/record
	@EXEUNT_BIN=$(KUBE_BIN) EXEUNT_KUBE_VERSIONS='$(KUBES)' EXEUNT_TABLE=$(KUBE_BIN)/differential.md EXEUNT_LIBRARY_TABLE=$(KUBE_BIN)/library.md \
		$(BUILT_ALIKE) $(BIN)/record -kubernetes=$(KUBE_VERSION) $(if $(RECORD),-results=docs/versions) $(PACKAGES) $(if $(HAS_LAST_VERSION),,-skip TestUpgradeAndDowngradeLoseNothing)
	@$(if $(HAS_LAST_VERSION),,echo 'not tested: $(NO_LAST_VERSION)')
	@if [ -f $(KUBE_BIN)/differential.md ]; then \
		echo "beside upstream's loops (docs/differences.md says which differences are intended, and why):"; \
		cat $(KUBE_BIN)/differential.md; \
	fi
	@if [ -f $(KUBE_BIN)/library.md ]; then \
		echo "a provisioner on sig-storage-lib-external-provisioner v10, and on pkg/provisioner:"; \
		cat $(KUBE_BIN)/library.md; \
	fi

.PHONY: upstream-specs
upstream-specs: # upstream's e2e.test, with the specs of API machinery only, and upstream's runner
	@echo "building upstream's end-to-end specs $(KUBE_VERSION) (the first time about 4 minutes)"
	@mkdir -p $(BIN)/upstream
	@cd test/upstream/e2e && $(GO_TEST) -c -ldflags '$(KUBE_FLAGS)' -o $(BIN)/upstream/e2e.test . && \
		$(GO_BUILD) -ldflags '-s -w' -o $(BIN)/upstream/ginkgo github.com/onsi/ginkgo/v2/ginkgo

# The last line of the output is the summary: e2e-garbage-specs: ours, n of n specs passed in ...
.PHONY: e2e-garbage-specs
e2e-garbage-specs: build upstream-controller-manager upstream-specs ## Run upstream's end-to-end specs of garbage collection against garbage-collector; SIDE=stock compares, SIDE=switching changes sides meanwhile
	@$(GO_BUILD) -o $(BIN)/specs ./test/e2e/garbage/specs
	@$(BIN)/specs --bin-dir=$(BIN) --side=$(SIDE)

# The tests are those of the Kubernetes module. One import is replaced, unless SIDE=stock.
# The go command leaves out folders that begin with a "_": its ./... would compile these files.
INTEGRATION := $(BIN)/upstream/_integration
COLLECTOR = $(if $(filter stock,$(SIDE)),k8s.io/kubernetes/pkg/controller/garbagecollector,github.com/exeunt-io/exeunt/test/upstream/e2e/integration/garbagecollector)
.PHONY: upstream-integration
upstream-integration: # upstream's integration tests of garbage collection, which start our program, and etcd
	@echo "building upstream's integration tests $(KUBE_VERSION) (the first time about 4 minutes)"
	@mkdir -p $(INTEGRATION)
	@cd test/upstream/e2e && tests=$$(go list -f '{{.Dir}}' -m k8s.io/kubernetes)/test/integration/garbagecollector && \
		separator='{"Replace":{' && for file in $$(cd "$$tests" && ls *_test.go); do \
			sed 's,"k8s.io/kubernetes/pkg/controller/garbagecollector","$(COLLECTOR)",' "$$tests/$$file" >$(INTEGRATION)/$$file; \
			printf '%s"%s":"%s"' "$$separator" "$(CURDIR)/test/upstream/e2e/integration/$$file" "$(INTEGRATION)/$$file"; separator=','; \
		done >$(INTEGRATION)/overlay.json && echo '}}' >>$(INTEGRATION)/overlay.json
	@cd test/upstream/e2e && $(GO_TEST) -c -ldflags '$(KUBE_FLAGS)' \
		-overlay $(INTEGRATION)/overlay.json -o $(INTEGRATION)/garbagecollector.test ./integration && \
		$(GO_BUILD) -ldflags '-s -w' -o $(INTEGRATION)/etcd go.etcd.io/etcd/server/v3

# ONLY selects tests by a regular expression. The last line of the output is the summary. The tests find
# files of the Kubernetes module by TEST_SRCDIR and TEST_WORKSPACE, for they are built with -trimpath.
.PHONY: e2e-garbage-integration
e2e-garbage-integration: programs upstream-integration ## Run upstream's integration tests of garbage collection with garbage-collector; SIDE=stock compares
	@echo "running upstream's integration tests with $(SIDE) (about 5 minutes); the log is $(INTEGRATION)/log"
	@rm -rf $(INTEGRATION)/garbage-collector-*
	@cd $(INTEGRATION) && code=0; TEST_SRCDIR=$$(go env GOMODCACHE) TEST_WORKSPACE=. PATH=$(INTEGRATION):$$PATH EXEUNT_BIN=$(BIN) EXEUNT_LOGS=$(INTEGRATION) ./garbagecollector.test -test.v -test.timeout 30m -test.run '$(ONLY)' >log 2>&1 || code=$$?; \
		grep '^--- ' log || tail log; passed=$$(grep -c '^--- PASS' log || true); all=$$(grep -c '^=== RUN' log || true); \
		echo "e2e-garbage-integration: $(SIDE), $$passed of $$all tests passed"; test $$code -eq 0 -a $$all -gt 0

# Hard links, for a program looks for others in the folder that it was started from.
.PHONY: older-programs
older-programs: programs upstream-provisioner $(if $(HAS_LAST_VERSION),last-version)
	@mkdir -p $(KUBE_BIN)/upstream $(KUBE_BIN)/last
	@for program in $(PROGRAMS) upstream/csi-provisioner $(if $(HAS_LAST_VERSION),last/pv-controller last/provisioner); do \
		rm -f $(KUBE_BIN)/$$program; ln $(BIN)/$$program $(KUBE_BIN)/$$program; \
	done

NODE_BIN := $(BIN)/node
NODE_PROGRAMS := node pv-controller provisioner csimock csi-provisioner
# node_unfit prints why no node can run on this machine, or nothing.
node_unfit = if [ "$$(uname)" != Linux ]; then echo 'kubelet needs Linux'; \
	elif [ "$$(id -u)" != 0 ]; then echo 'kubelet needs the root user'; \
	elif ! command -v runc >/dev/null && ! [ -x $(NODE_BIN)/runc ] && ! command -v apt-get >/dev/null; then echo 'there is no runc'; \
	else (cd test/node && $(GO_BUILD) -ldflags '-s -w' -o $(NODE_BIN)/node .) && $(NODE_BIN)/node check; fi

.PHONY: e2e-node
e2e-node: ## Run pods with volumes on a real kubelet and containerd on this machine; needs Linux and root, elsewhere it says why it does nothing
	@reason=$$($(node_unfit)); if [ -z "$$reason" ]; then $(MAKE) --no-print-directory test-node; \
		else echo "the tests on a real node do not run here: $$reason"; fi

.PHONY: test-node
test-node: node
	@echo "running the tests on a real node (about three minutes)"
	@cd test/node && EXEUNT_BIN=$(BIN) $(GO_TEST) -count=1 -timeout 20m ./...

.PHONY: sandbox-node
sandbox-node: ## Run a cluster with a real node until Ctrl-C, to try commands in it; SIDE=ours, chart or upstream; needs Linux and root
	@case '$(SIDE)' in ours | chart | upstream) ;; *) echo 'SIDE=$(SIDE) must be ours, chart or upstream'; exit 1;; esac
	@reason=$$($(node_unfit)); if [ -n "$$reason" ]; then echo "no node can run here: $$reason"; exit 1; fi
	@$(MAKE) --no-print-directory node
	@$(NODE_BIN)/sandbox --source=$(CURDIR) --bin-dir=$(BIN) --side='$(SIDE)'

# Containerd without the file systems and the tracing that the node does not use. Runc is that
# of the machine, or that of the machine's package archive.
.PHONY: node
node: programs controlplane build-upstream ## Build kubelet, containerd and images into bin/node, for "bin/exeunt sandbox --node"
	@echo "building kubelet, kube-scheduler and containerd (the first time about 4 minutes)"
	@mkdir -p $(NODE_BIN)/cni $(NODE_BIN)/images
	@cd test/node/kubernetes && $(GO_BUILD) -ldflags '$(KUBE_FLAGS)' -o $(NODE_BIN)/kubelet . && ln -sf kubelet $(NODE_BIN)/kube-scheduler
	@cd test/node/containerd && $(GO_BUILD) -tags 'no_btrfs no_devmapper no_zfs no_aufs no_tracing' -ldflags '-s -w' -o $(NODE_BIN)/ \
		$(addprefix github.com/containerd/containerd/v2/cmd/,containerd containerd-shim-runc-v2 ctr)
	@cd test/node/containerd && $(GO_BUILD) -ldflags '-s -w' -o $(NODE_BIN)/cni/ \
		$(addprefix github.com/containernetworking/plugins/plugins/,ipam/host-local main/bridge main/loopback)
	@cd test/node && $(GO_BUILD) -ldflags '-s -w' -o $(NODE_BIN)/node .
	@cd test/node && $(GO_BUILD) -ldflags '-s -w' -o $(NODE_BIN)/sandbox ./sandbox
	@$(if $(wildcard $(NODE_BIN)/runc),,$(fetch_runc))
	@$(call node_images,$(NODE_BIN)/images,$(RELEASED),$(NODE_BIN) $(BIN) $(BIN)/upstream,$(NODE_PROGRAMS))

# fetch_runc links the runc of the machine, or unpacks that of the package archive.
fetch_runc = if command -v runc >/dev/null; then ln -s "$$(command -v runc)" $(NODE_BIN)/runc; else \
		unpacked=$$(mktemp -d) && (cd "$$unpacked" && apt-get download -qq runc && dpkg-deb -x runc_*.deb .) && \
		cp "$$unpacked/usr/sbin/runc" $(NODE_BIN)/runc && rm -r "$$unpacked"; fi
# node_images packs, into the directory $(1) and with the tag $(2), those programs for this machine's
# architecture that are in the directories $(3): $(4).
node_images = programs=$(1)/linux-$$(go env GOARCH); mkdir -p "$$programs"; \
	for program in $(4); do \
		for dir in $(3); do if [ -f "$$dir/$$program" ]; then ln -f "$$dir/$$program" "$$programs/$$program"; fi; done; \
	done; ln -f $(BIN)/exeunt "$$programs/exeunt"; \
	(cd tools/release && $(GO_BUILD) -o $(BIN)/tools/release .); \
	$(BIN)/tools/release images --programs=$(1) --out=$(1) --platforms=linux/$$(go env GOARCH) \
		--version='$(VERSION)' --tag='$(2)' --date='$(or $(COMMIT_DATE),1970-01-01T00:00:00Z)' '$(REGISTRY)' $(4)

# The last line of the output is the last line of the soak: soak: seed n, V volumes, ...
MINUTES := 5
SIDE := ours
.PHONY: soak
soak: soak-arguments build $(if $(filter upstream,$(SIDE)),build-upstream) $(if $(filter $(OLDER_KUBES),$(KUBE)),older-programs) ## Run the programs under faults: SEED=n (default: random) MINUTES=m SIDE=ours or upstream KUBE=1.34 or 1.35
	@$(GO_BUILD) -o $(BIN)/soak ./test/e2e/soak
	@$(BIN)/soak --bin-dir=$(KUBE_BIN) --seed='$(SEED)' --duration=$(MINUTES)m --side=$(SIDE)

# Before the build, which takes minutes.
.PHONY: soak-arguments
soak-arguments:
	@case '$(SEED)' in *[!0-9]*) echo 'SEED=$(SEED) must be a whole number, such as SEED=7'; exit 1;; esac
	@case '$(MINUTES)' in '' | *[!0-9]* | 0*) echo 'MINUTES=$(MINUTES) must be a whole number from 1, such as MINUTES=5'; exit 1;; esac
	@case '$(SIDE)' in ours | upstream) ;; *) echo 'SIDE=$(SIDE) must be ours or upstream'; exit 1;; esac

.PHONY: test-soak
test-soak: ## Run the programs under faults for five minutes on a fresh seed
	@$(MAKE) --no-print-directory soak SEED= MINUTES=5 SIDE=ours

# ONLY selects scenarios by a regular expression, LIMIT bounds their sizes for a trial, whose
# page belongs elsewhere, PROFILES is a directory for profiles of all processes: make bench ONLY=storm LIMIT=100 ROUNDS=1 OUT=/tmp/performance.md
ROUNDS := 3
LIMIT := 0
OUT := docs/performance.md
COMPARE = $(BIN)/compare --bin-dir=$(BIN) --results='$(basename $(OUT))/results.json' --rounds='$(ROUNDS)' --only='$(ONLY)' --limit='$(LIMIT)' --out='$(OUT)' --profiles='$(PROFILES)'

.PHONY: bench
bench: compare ## Measure our programs, upstream's and the ceiling (about an hour), write docs/performance.md; ONLY=regexp ROUNDS=n LIMIT=n OUT=file
	@$(COMPARE)

.PHONY: bench-full
bench-full: compare ## The same with the scenarios that take hours
	@$(COMPARE) --full

.PHONY: compare
compare: build build-upstream
	@$(GO_BUILD) -o $(BIN)/compare ./test/bench/compare

.PHONY: bench-memory
bench-memory: build build-upstream ## Measure the memory of both programs, and of upstream's, with 50,000 volumes
	@echo "measuring memory (about ten minutes)"
	@EXEUNT_BIN=$(BIN) $(GO_TEST) ./test/bench -run xxx -bench Memory -benchtime 1x -timeout 30m

.PHONY: verify
verify: verify-format verify-size verify-modules verify-workflows verify-windows verify-lint ## Check formatting, file sizes, go.mod files, workflows, the build for Windows and lint rules

.PHONY: verify-format
verify-format:
	@echo "checking formatting"
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on: $$unformatted"; exit 1; fi

# A larger file belongs into a release, not into every clone.
MAX_BYTES := 1000000

.PHONY: verify-size
verify-size:
	@echo "checking that no file is larger than $(MAX_BYTES) bytes"
	@large=$$(git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'find "$$@" -prune -type f -size +$(MAX_BYTES)c 2>/dev/null' find || true); \
		if [ -n "$$large" ]; then echo "larger than $(MAX_BYTES) bytes: $$large"; exit 1; fi

.PHONY: verify-modules
verify-modules:
	@for module in $(MODULES); do \
		echo "checking go.mod and go.sum of $$module"; (cd $$module && go mod tidy -diff); \
	done
	@for module in test/controlplane test/upstream/kube-controller-manager; do for version in $(OLDER_KUBES); do \
		echo "checking go.$$version.mod of $$module"; (cd $$module && go mod tidy -diff -modfile=go.$$version.mod); \
	done; done

.PHONY: verify-workflows
verify-workflows:
	@echo "checking .github/workflows (the first time a few seconds more)"
	@cd tools && $(GO_BUILD) -o $(BIN)/tools/actionlint github.com/rhysd/actionlint/cmd/actionlint
	@$(BIN)/tools/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml

# The system that differs most from those that the tests run on.
.PHONY: verify-windows
verify-windows:
	@echo "building exeunt for Windows (the first time about a minute)"
	@GOOS=windows GOARCH=amd64 $(GO_BUILD) -o $(BIN)/tools/exeunt.exe ./cmd/exeunt

.PHONY: verify-lint
verify-lint:
	@echo "building golangci-lint (the first time about 4 minutes)"
	@cd tools && $(GO_BUILD) -o $(BIN)/tools/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@for module in $(LINTED); do \
		echo "linting $$module (the first time minutes, if it was not built before)"; \
		(cd $$module && $(BUILT_ALIKE) \
			$(BIN)/tools/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); \
	done

# The platforms of images and of the command-line tool, and the names of images: those in
# the manifests, unless REGISTRY and TAG name others.
IMAGE_PLATFORMS := linux/amd64 linux/arm64
CLI_PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
REGISTRY := registry.invalid/exeunt
TAG = $(RELEASED)
RELEASE_DIR := $(BIN)/release
COMMIT_DATE = $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
comma := ,
empty :=
# build_for builds the programs $(2) for each of the platforms $(1).
build_for = for platform in $(1); do \
		echo "building $(2) for $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform\#*/} $(GO_BUILD) -ldflags '$(OUR_FLAGS)' \
			-o $(RELEASE_DIR)/$${platform%/*}-$${platform\#*/}/ $(addprefix ./cmd/,$(2)); \
	done
# release runs the program that packs, with the part $(1) for the platforms $(2).
release = (cd tools/release && $(GO_BUILD) -o $(BIN)/tools/release .) && \
	$(BIN)/tools/release $(1) --programs=$(RELEASE_DIR) --out=$(RELEASE_DIR) --platforms=$(subst $(empty) $(empty),$(comma),$(2)) \
		--version='$(VERSION)' --tag='$(TAG)' --revision='$(or $(shell git rev-parse HEAD 2>/dev/null),unknown)' --date='$(or $(COMMIT_DATE),1970-01-01T00:00:00Z)'

.PHONY: images
images: ## Build an OCI archive of each program into bin/release, for amd64 and arm64, without a Docker engine; REGISTRY and TAG set the names
	@$(call build_for,$(IMAGE_PLATFORMS),$(PROGRAMS))
	@$(call release,images,$(IMAGE_PLATFORMS)) '$(REGISTRY)' $(PROGRAMS)

.PHONY: dist
dist: ## Build kubectl-exeunt for Linux, macOS and Windows into bin/release, with checksums, a krew manifest and release notes
	@$(call build_for,$(CLI_PLATFORMS),exeunt)
	@$(call release,cli,$(CLI_PLATFORMS)) LICENSE CHANGELOG.md

.PHONY: test-release
test-release: ## Test the program that packs images and archives
	@cd tools/release && $(GO_TEST) -count=1 -timeout 10m .

.PHONY: set-release
set-release: ## Write the version RELEASE=vX.Y.Z into the chart and all manifests
	@echo '$(RELEASE)' | grep -Eqx 'v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?' || { echo 'say which version, such as RELEASE=v0.2.0'; exit 1; }
	@sed -i 's/^version: .*/version: $(RELEASE:v%=%)/; s/^appVersion: .*/appVersion: $(RELEASE)/' deploy/helm/exeunt/Chart.yaml
	@sed -i 's,\(registry\.invalid/exeunt/[a-z-]*\):v.*,\1:$(RELEASE),; s/newTag: v.*/newTag: $(RELEASE)/' $$(git ls-files 'deploy/*.yaml' | grep -v /helm/)

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN)
