package main

import (
	_ "embed"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/exeunt-io/exeunt/internal/program"
)

// upstreamFlags are the flags of csi-provisioner v6.3.0: name and default, as its
// --help lists them. An end-to-end test compares them with the program itself.
//
//go:embed testdata/csi-provisioner.flags
var upstreamFlags string

// differs lists the flags with another default than upstream, with the reason.
var differs = map[string]string{
	"kube-api-qps":   "no limit by default: the API server has priority and fairness",
	"kube-api-burst": "as --kube-api-qps; where one is set, the other is upstream's",
}

// addedByMain lists the flags that program.Main adds to all programs.
var addedByMain = map[string]bool{"version": true}

func TestUpstreamFlagsAreServedOrRefused(t *testing.T) {
	flags := flagsOf(t)
	for _, row := range upstreamRows() {
		flag := flags.Lookup(row.name)
		switch {
		case addedByMain[row.name]:
			continue
		case flag == nil:
			t.Errorf("--%s is neither served nor refused", row.name)
			continue
		}
		if why, refused := program.RefusalReason(flag); refused {
			if len(why) < 40 {
				t.Errorf("--%s is refused without a reason: %q", row.name, why)
			}
			continue
		}
		_, intended := differs[row.name]
		if ours, theirs := shown(flag.DefValue), shown(row.value); (ours == theirs) == intended {
			t.Errorf("--%s is %q by default, that of csi-provisioner is %q; intended to differ: %v", row.name, ours, theirs,
				intended)
		}
	}
}

// flagRow matches a row of the table: flag, upstream's default, status here, remark.
var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`(.*)`)? ?\\| ([^|]+) \\| ?(.*?) ?\\|$")

func TestDocumentedFlagsMatchTheProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags, documented := flagsOf(t), flagRow.FindAllStringSubmatch(string(text), -1)
	rows := upstreamRows()
	if len(documented) != len(rows) {
		t.Errorf("%d rows for %d flags", len(documented), len(rows))
	}
	for i, row := range documented {
		if i >= len(rows) || row[1] != rows[i].name || row[2] != rows[i].value {
			t.Fatalf("row %d of the table is --%s with default %q, which csi-provisioner does not list there", i+1, row[1],
				row[2])
		}
		if want := statusOf(flags, row[1]); row[3] != want {
			t.Errorf("--%s: the table has %q, want %q", row[1], row[3], want)
		}
		if _, differs := differs[row[1]]; (differs || strings.HasPrefix(row[3], "refused")) && row[4] == "" {
			t.Errorf("--%s differs without a remark", row[1])
		}
	}
}

// ownFlag matches an item of the list of flags that csi-provisioner does not have. exeunt rollback
// has the same list.
var ownFlag = regexp.MustCompile("(?m)^- `--([a-z-]+)` \\(")

func TestDocumentedOwnFlagsMatchTheProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented, own := map[string]bool{}, map[string]bool{}
	for _, item := range ownFlag.FindAllStringSubmatch(string(text), -1) {
		documented[item[1]] = true
	}
	flagsOf(t).VisitAll(func(flag *pflag.Flag) { own[flag.Name] = true })
	for _, row := range upstreamRows() {
		delete(own, row.name)
	}
	if !maps.Equal(documented, own) {
		t.Errorf("flags that csi-provisioner does not have: %v in docs/flags.md, %v in the program", documented, own)
	}
}

// statusOf returns the status of an upstream flag in this program.
func statusOf(flags *pflag.FlagSet, name string) string {
	if addedByMain[name] {
		return "served"
	}
	flag := flags.Lookup(name)
	if flag == nil {
		return "missing"
	}
	if _, refused := program.RefusalReason(flag); refused {
		return "refused"
	}
	if _, other := differs[name]; other {
		return "served, default " + flag.DefValue
	}
	return "served"
}

func TestInvalidFlagsAreRefusedByName(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		env  map[string]string
		want string
	}{
		"both names of one flag":                 {"--http-endpoint=:1 --metrics-address=:2", nil, "--metrics-address"},
		"profiles without endpoint":              {"--enable-pprof", nil, "--http-endpoint"},
		"lease shorter than renewal":             {"--leader-election --leader-election-lease-duration=5s", nil, "--leader-election-lease-duration"},
		"lease too short to stop in":             {"--leader-election --leader-election-renew-deadline=12s", nil, "--leader-election-lease-duration"},
		"renewal shorter than retry":             {"--leader-election --leader-election-retry-period=9s", nil, "--leader-election-renew-deadline"},
		"no cloning workers":                     {"--cloning-protection-threads=0", nil, "--cloning-protection-threads"},
		"negative sweep interval":                {"--snapshot-orphan-sweep-interval=-1s", nil, "--snapshot-orphan-sweep-interval"},
		"capacity without namespace":             {"--enable-capacity", nil, "NAMESPACE"},
		"capacity without pod":                   {"--enable-capacity", map[string]string{"NAMESPACE": "ns"}, "POD_NAME"},
		"capacity without poll interval":         {"--enable-capacity --capacity-poll-interval=0", map[string]string{"NAMESPACE": "ns", "POD_NAME": "pod"}, "--capacity-poll-interval"},
		"capacity without workers":               {"--enable-capacity --capacity-threads=0", map[string]string{"NAMESPACE": "ns", "POD_NAME": "pod"}, "--capacity-threads"},
		"node deployment without node":           {"--node-deployment", nil, "NODE_NAME"},
		"negative delay":                         {"--node-deployment --node-deployment-base-delay=-1s", map[string]string{"NODE_NAME": "node"}, "--node-deployment-base-delay"},
		"zero backoff":                           {"--retry-interval-start=0", nil, "--retry-interval-start"},
		"gate VolumeAttributesClass off":         {"--feature-gates=VolumeAttributesClass=false", nil, "VolumeAttributesClass=false is refused"},
		"gate CrossNamespaceVolumeDataSource on": {"--feature-gates=CrossNamespaceVolumeDataSource=true", nil, "CrossNamespaceVolumeDataSource=true is refused"},
		"gate ReleaseLeaderElectionOnExit off":   {"--feature-gates=ReleaseLeaderElectionOnExit=false", nil, "ReleaseLeaderElectionOnExit=false is refused"},
		"unknown gate":                           {"--feature-gates=APIServerIdentity=true", nil, "known:"},
		"metrics path without slash":             {"--metrics-path=metrics", nil, "--metrics-path"},
		"metrics path of health":                 {"--metrics-path=/healthz", nil, "--metrics-path=/healthz is the path of health"},
		"metrics path of the lease":              {"--leader-election --metrics-path=/healthz/leader-election", nil, "is the path of health or a profile"},
		"metrics path of profiles":               {"--http-endpoint=:1 --enable-pprof --metrics-path=/debug/pprof/", nil, "is the path of health or a profile"},
		"metrics path of a profile":              {"--http-endpoint=:1 --enable-pprof --metrics-path=/debug/pprof/trace", nil, "is the path of health or a profile"},
		"metrics path with wildcard":             {"--metrics-path=/{", nil, "--metrics-path"},
		"metrics path with a tab":                {"--metrics-path=/a%09b", nil, "--metrics-path"},
		"metrics path that is not clean":         {"--metrics-path=/a//b", nil, "--metrics-path"},
		"metrics path above the root":            {"--metrics-path=/../b", nil, "--metrics-path"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"NAMESPACE", "POD_NAME", "NODE_NAME"} {
				t.Setenv(variable, tc.env[variable])
			}
			err := complete(t, strings.Fields(tc.args)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want an error with %q", tc.args, err, tc.want)
			}
		})
	}
}

func TestFlagsOfChartsAreAccepted(t *testing.T) {
	for _, variable := range []string{"NAMESPACE", "POD_NAME", "NODE_NAME"} {
		t.Setenv(variable, "some")
	}
	for _, args := range []string{
		"--csi-address=$(ADDRESS) --v=5 --feature-gates=Topology=true --leader-election --leader-election-namespace=kube-system --timeout=60s --extra-create-metadata",
		"--feature-gates=Topology=false",
		"--feature-gates=VolumeAttributesClass=true,ReleaseLeaderElectionOnExit=true",
		"--node-deployment --strict-topology --immediate-topology=false --enable-capacity --capacity-ownerref-level=0",
		"--leader-election-labels=a:b,example.com/c:d --leader-election-labels=e:",
		"--metrics-address=:8080 --enable-pprof",
		"--automaxprocs --kube-api-qps=50 --kube-api-burst=100 --worker-threads=50 --retry-interval-start=500ms",
		"--logging-format=json",
		"--kube-api-qps=20",
		"--kube-api-burst=20",
		"--kube-api-qps=-1",
		"--retry-interval-max=500ms",
		"--retry-interval-start=10m",
		"--node-deployment --node-deployment-max-delay=10s",
		"--node-deployment --node-deployment-base-delay=2m",
	} {
		if err := complete(t, strings.Fields(args)...); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestKubeconfigOfEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", "of-environment")
	for args, want := range map[string]string{"": "of-environment", "--kubeconfig=of-flag": "of-flag"} {
		work, flags := parsed(t, strings.Fields(args)...)
		if err := completed(t, work); err != nil || flags.Lookup("kubeconfig").Value.String() != want {
			t.Errorf("%q: %s, %v, want %s", args, flags.Lookup("kubeconfig").Value, err, want)
		}
	}
}

func TestLabelsAreReadAndRefused(t *testing.T) {
	for text, want := range map[string]string{"a:b": "a:b", "b:1,a:2": "a:2,b:1", "a:": "a:"} {
		labels := labelFlag{}
		if err := labels.Set(text); err != nil || labels.String() != want {
			t.Errorf("%q is %q, %v, want %q", text, labels, err, want)
		}
	}
	for _, text := range []string{"", "a", "a:b:c", "a b:c", ":b", "a:b c"} {
		if err := (labelFlag{}).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestLeaseNamespaceIsFlagOrPodNamespace(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "of-pod")
	for namespace, want := range map[string]string{"": "of-pod", "asked": "asked"} {
		options := newElectionOptions()
		options.namespace = namespace
		if got := options.lease("driver").ResourceNamespace; got != want {
			t.Errorf("namespace %q, want %q", got, want)
		}
	}
}

type upstreamRow struct{ name, value string }

func upstreamRows() []upstreamRow {
	var rows []upstreamRow
	for line := range strings.Lines(upstreamFlags) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows = append(rows, upstreamRow{name, value})
	}
	return rows
}

// shown returns a default as --help shows it: empty for a zero value.
func shown(value string) string {
	switch value {
	case "false", "0", "0s", "[]", "map[]", "<nil>":
		return ""
	}
	return value
}

func flagsOf(t *testing.T) *pflag.FlagSet {
	t.Helper()
	_, flags := parsed(t)
	return flags
}

func parsed(t *testing.T, args ...string) (program.Runner, *pflag.FlagSet) {
	t.Helper()
	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("provisioner", pflag.ContinueOnError)
	work.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return work, flags
}

func complete(t *testing.T, args ...string) error {
	t.Helper()
	work, _ := parsed(t, args...)
	return completed(t, work)
}

// completed checks the flags. Several programs in one process need a logging reset.
func completed(t *testing.T, work program.Runner) error {
	t.Helper()
	if err := logsapi.ResetForTest(nil); err != nil {
		t.Fatal(err)
	}
	return work.Complete()
}
