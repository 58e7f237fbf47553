# Everything is done by the go command, git and make. The first build compiles
# etcd and kube-apiserver and takes minutes; later ones take seconds, for the go
# command rebuilds only what changed. test/Makefile has the parts of the tests and what they need.

.DEFAULT_GOAL := help
.SHELLFLAGS := -eu -c

BIN := $(CURDIR)/bin
PROGRAMS := pv-controller provisioner garbage-collector node-terminator alive-controller csimock exeunt
MODULES := . pkg/graceful cmd/kube-apiserver test/cloud test/controlplane test/manifests test/node test/node/kubernetes test/node/containerd test/upstream/kube-controller-manager test/upstream/csi-provisioner test/upstream/external-snapshotter test/upstream/e2e test/upstream/karpenter tools tools/promtool tools/release tools/krew
# The modules that hold Go files of ours.
LINTED := . pkg/graceful test/cloud test/controlplane test/manifests test/node tools/release

# All binaries and tests are static and built alike, and the modules require the same versions, so that
# each package is compiled once; only the race detector needs its own. grpcnotrace leaves out gRPC's tracing
# pages, whose templates keep the linker from dropping unused methods: the programs are a third smaller.
BUILT_ALIKE = CGO_ENABLED=0 GOFLAGS="$$(go env GOFLAGS) -trimpath -buildvcs=false -tags=grpcnotrace"
GO_BUILD = $(BUILT_ALIKE) go build
GO_TEST = $(BUILT_ALIKE) go test

# The version of our programs: the last tag, or the appVersion of the chart, and the commit.
RELEASED = $(shell awk '$$1 == "appVersion:" { print $$2 }' deploy/helm/exeunt/Chart.yaml)
DESCRIBED = $(shell git describe --always --tags --match 'v[0-9]*' --abbrev=12 2>/dev/null)
VERSION = $(if $(filter v%,$(DESCRIBED)),$(shell echo '$(DESCRIBED)' | sed 's/-\([0-9]*\)-\(g[0-9a-f]*\)$$/+\1.\2/'),$(RELEASED)+$(or $(DESCRIBED),unknown))
TREE_STATE = $(if $(shell git status --porcelain 2>/dev/null),dirty,clean)
# version_flags sets what a Kubernetes program says of itself: the version $(1),
# the state of the tree $(2), the commit $(3) and the build date $(4).
COMPONENT := k8s.io/component-base/version
version_flags = -s -w -X $(COMPONENT).gitVersion=$(1) -X $(COMPONENT).gitTreeState=$(2) \
	-X $(COMPONENT).gitCommit=$(3) -X $(COMPONENT).buildDate=$(or $(4),1970-01-01T00:00:00Z) \
	-X $(COMPONENT).gitMajor=$(call number,1,$(1)) -X $(COMPONENT).gitMinor=$(call number,2,$(1)) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(1) -X k8s.io/client-go/pkg/version.gitCommit=$(3)
number = $(patsubst v%,%,$(word $(1),$(subst ., ,$(2))))
OUR_FLAGS = $(call version_flags,$(VERSION),$(TREE_STATE),$(or $(shell git rev-parse HEAD 2>/dev/null),unknown),)

include test/Makefile

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: programs controlplane ## Build all programs into bin/ (the first time about 8 minutes on two cores)

# bin/sandbox, bin/cloudmock and bin/bucket-operator are for a clone, and are not released.
.PHONY: programs
programs:
	@echo "building $(PROGRAMS) sandbox $(VERSION) (the first time about a minute)"
	@$(GO_BUILD) -ldflags '$(OUR_FLAGS)' -o $(BIN)/ $(PROGRAMS:%=./cmd/%) ./cmd/sandbox ./test/cloudmock ./examples/bucket-operator

.PHONY: apiserver
apiserver: ## Build bin/kube-apiserver: upstream's, with graceful deletion of custom resources (the first time 10 minutes or more); KUBE=1.34 or 1.35; apiserver-image packs it
	@($(build_apiserver)) && $(GO_BUILD) -o $(KUBE_BIN)/ ./examples/virtual-machine ./examples/database

.PHONY: demo
demo: build ## Build, then show the product at work on a real API server
	@$(BIN)/sandbox demo

.PHONY: check
check: golangci-lint ## Check what you changed: format, vet and lint of the changed packages, and their unit tests; BASE=commit compares with it
	@$(BUILT_ALIKE) LINT=$(BIN)/tools/golangci-lint test/check.sh '$(BASE)'

.PHONY: test
test: ## Run the unit tests of the product, and the end-to-end tests of what it promises
	@test/parts.sh test-unit test-promises

.PHONY: test-all
test-all: ## Run everything: race detector, models, upstream's programs and suites, older versions, node, images, manifests, soak (hours)
	@test/parts.sh $(ALL_PARTS)

.PHONY: e2e
e2e: build build-upstream upstream-karpenter $(if $(filter $(OLDER_KUBES),$(KUBE)),older-programs,controlplanes) ## Run all end-to-end tests; PACKAGES=./test/e2e/storage chooses, KUBE=1.34 or 1.35 runs them on an older API server
	@echo "running the end-to-end tests on Kubernetes $(KUBE_VERSION)"
	@$(E2E) $(PACKAGES) && cat $(wildcard $(TABLES)) </dev/null

.PHONY: e2e-node
e2e-node: ## Run pods with volumes on a real kubelet and containerd on this machine; needs Linux and root, elsewhere it says why it does nothing
	@reason=$$($(node_unfit)); if [ -z "$$reason" ]; then $(MAKE) --no-print-directory test-node; \
		else echo "the tests on a real node do not run here: $$reason"; fi

.PHONY: soak
soak: soak-arguments build $(if $(filter upstream,$(SIDE)),build-upstream) $(if $(filter $(OLDER_KUBES),$(KUBE)),older-programs) ## Run the programs under faults: SEED=n (default: random) MINUTES=m SIDE=ours or upstream KUBE=1.34 or 1.35
	@$(GO_BUILD) -o $(BIN)/soak ./test/soak
	@$(BIN)/soak --bin-dir=$(KUBE_BIN) --seed='$(SEED)' --duration=$(MINUTES)m --side=$(SIDE)

.PHONY: model
model: mutants $(if $(ONLY)$(MUTANTS),,model-garbage model-nodes model-teardown) ## Explore all worlds of all models, walk at random for RANDOM_TIME, run the mutants (hours); ONLY and MUTANTS choose some of the storage model, and no walk
	@$(EXPLORE)

.PHONY: bench
bench: compare ## Measure our programs, upstream's and the ceiling (about an hour); ONLY=regexp ROUNDS=n LIMIT=n OUT=folder FULL=yes
	@$(COMPARE)

.PHONY: fuzz
fuzz: ## Run every fuzz target for 10 seconds, one after the other; FUZZTIME=1m sets the time of each
	@test/fuzz.sh $(FUZZTIME)

.PHONY: sandbox
sandbox: build ## Run a cluster until Ctrl-C, to try commands in it; NODE=yes with a real node (Linux, root), SIDE=ours, chart or upstream there
	@$(if $(NODE),$(MAKE) --no-print-directory sandbox-node,$(BIN)/sandbox)

.PHONY: verify
verify: golangci-lint ## Check formatting, file sizes, go.mod files, workflows, the build for Windows and lint rules
	@$(BUILT_ALIKE) BIN=$(BIN) MODULES='$(MODULES)' LINTED='$(LINTED)' OLDER_KUBES='$(OLDER_KUBES)' test/verify.sh

.PHONY: golangci-lint
golangci-lint:
	@echo "building golangci-lint (the first time about 4 minutes)"
	@cd tools && $(GO_BUILD) -o $(BIN)/tools/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

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
# release runs the program that packs, with the part $(1) for the platforms $(2), with the version $(3), by default ours.
release = (cd tools/release && $(GO_BUILD) -o $(BIN)/tools/release .) && \
	$(BIN)/tools/release $(1) --programs=$(RELEASE_DIR) --out=$(RELEASE_DIR) --platforms=$(subst $(empty) $(empty),$(comma),$(2)) \
		--version='$(or $(3),$(VERSION))' --tag='$(TAG)' --revision='$(or $(shell git rev-parse HEAD 2>/dev/null),unknown)' --date='$(or $(COMMIT_DATE),1970-01-01T00:00:00Z)'

.PHONY: images
images: ## Build an OCI archive of each program into bin/release, for amd64 and arm64, without a Docker engine; REGISTRY and TAG set the names
	@$(call build_for,$(IMAGE_PLATFORMS),$(PROGRAMS))
	@$(call release,images,$(IMAGE_PLATFORMS)) '$(REGISTRY)' $(PROGRAMS)$(if $(findstring $(TAG)+,$(VERSION)), && echo 'these images are $(VERSION) and have the tag of $(TAG): before you push them name another by TAG=')

.PHONY: dist
dist: ## Build kubectl-exeunt for Linux, macOS and Windows into bin/release, with checksums, a krew manifest and release notes
	@$(call build_for,$(CLI_PLATFORMS),exeunt)
	@$(call release,cli,$(CLI_PLATFORMS)) LICENSE CHANGELOG.md

.PHONY: set-release
set-release: ## Write the version RELEASE=vX.Y.Z into the chart, manifests, examples and pages
	@echo '$(RELEASE)' | grep -Eqx 'v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?' || { echo 'say which version, such as RELEASE=v0.2.0'; exit 1; }
	@sed -i 's/^version: .*/version: $(RELEASE:v%=%)/; s/^appVersion: .*/appVersion: $(RELEASE)/' deploy/helm/exeunt/Chart.yaml
	@sed -i 's,\(exeunt/[a-z-]*\):v[-0-9a-z.]*,\1:$(RELEASE),; s/newTag: v.*/newTag: $(RELEASE)/; s/-exeunt\.[0-9][-0-9a-z.]*/-exeunt.$(RELEASE:v%=%)/' README.md docs/platforms.md $$(git ls-files 'deploy/*.yaml' 'examples/*.yaml' | grep -v /helm/)

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN)
