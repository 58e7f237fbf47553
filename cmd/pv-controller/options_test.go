package main

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program"
)

// upstreamFlags are the flags of kube-controller-manager v1.36.3: group, name and
// default, as its --help lists them. An end-to-end test compares them with the
// program itself.
//
//go:embed testdata/kube-controller-manager.flags
var upstreamFlags string

// differs has the flags with another default than upstream, and the reason.
var differs = map[string]string{
	"kube-api-qps":               "the API server limits clients fairly, unless a flag sets a limit",
	"kube-api-burst":             "as --kube-api-qps; if only one is set, the other is upstream's",
	"leader-elect-resource-name": "kube-controller-manager runs on with its own lease",
	"secure-port":                "serving is opt-in, so that two programs on one host never clash",
}

func TestFlagsOfKubeControllerManagerAreServedOrRefused(t *testing.T) {
	flags := flagsOf(t)
	for line := range strings.Lines(upstreamFlags) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		group, name, value := fields[0], fields[1], fields[2]
		flag := flags.Lookup(name)
		if group == "global" {
			continue // --help and --version are every program's
		}
		if flag == nil {
			t.Errorf("--%s (%s) is neither served nor refused", name, group)
			continue
		}
		why, refused := program.RefusalReason(flag)
		if refused {
			expectReason(t, name, why)
			continue
		}
		ours, theirs := shown(flag.DefValue), shown(value)
		if _, intended := differs[name]; (ours == theirs) == intended {
			t.Errorf("--%s is %q by default, that of kube-controller-manager is %q; intended to differ: %v", name, ours, theirs,
				intended)
		}
	}
}

// expectReason checks that a reason says why and, after a semicolon or in its last
// part, what to do.
func expectReason(t *testing.T, name, why string) {
	t.Helper()
	if len(why) < 40 || !strings.ContainsAny(why, ";:") || strings.HasSuffix(why, ".") {
		t.Errorf("--%s is refused without saying why and what to do: %q", name, why)
	}
}

func TestOnlyFlagsOfKubeControllerManagerAreRefused(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(upstreamFlags) {
		known[strings.Split(line, "\t")[1]] = true
	}
	flagsOf(t).VisitAll(func(flag *pflag.Flag) {
		if _, refused := program.RefusalReason(flag); refused && !known[flag.Name] {
			t.Errorf("--%s is refused, and no kube-controller-manager has it", flag.Name)
		}
	})
}

// shown returns a default as --help prints it, empty for a zero value.
func shown(value string) string {
	switch value {
	case "false", "0", "0s", "[]", "<nil>":
		return ""
	}
	return value
}

func flagsOf(t *testing.T) *pflag.FlagSet {
	t.Helper()
	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("pv-controller", pflag.ContinueOnError)
	work.AddFlags(flags)
	return flags
}

func TestConfigzShowsFlagsAndDefaults(t *testing.T) {
	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("pv-controller", pflag.ContinueOnError)
	work.AddFlags(flags)
	if err := flags.Parse([]string{"--kube-api-qps=7.5", "--kube-api-burst=9", "--leader-elect=false",
		"--concurrent-claim-syncs=3", "--v=4"}); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(work.(*options).configuration())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"kind":"PVControllerConfiguration"`, `"HonorPVReclaimPolicy":true`, `"qps":7.5,"burst":9`,
		`"contentType":"application/vnd.kubernetes.protobuf"`, `"leaderElect":false`, `"leaseDuration":"15s"`,
		`"concurrentClaimSyncs":3`, `"concurrentVolumeSyncs":16`, `"pvClaimBinderSyncPeriod":"15s"`,
		`"enableDynamicProvisioning":true,"enableHostPathProvisioning":false`, `"verbosity":4`,
		`"minimumTimeoutNFS":300,"incrementTimeoutNFS":30`, `"minimumTimeoutHostPath":60,"incrementTimeoutHostPath":30`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is missing in %s", part, text)
		}
	}
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--concurrent-claim-syncs=0":                            "--concurrent-claim-syncs",
		"--pv-recycler-minimum-timeout-nfs=0":                   "the minimum must be at least 1",
		"--pv-recycler-timeout-increment-hostpath=-1":           "the increment not negative",
		"--pv-recycler-pod-template-filepath-nfs=/nowhere":      "--pv-recycler-pod-template-filepath-nfs",
		"--pv-recycler-pod-template-filepath-hostpath=/nowhere": "--pv-recycler-pod-template-filepath-hostpath",
		"--kube-api-burst=-1":                                   "--kube-api-burst",
		"--kube-api-content-type=text/plain":                    "--kube-api-content-type",
		"--disabled-metrics=no good name":                       "no good name",
		"--contention-profiling":                                "--secure-port",
		"--feature-gates=kube:SomeGate=true":                    "known:",
		"--leader-elect-renew-deadline=1h":                      "--leader-elect-renew-deadline",
		"--leader-elect-renew-deadline=12s":                     "--leader-elect-lease-duration",
		"--leader-elect-resource-lock=configmaps":               "--leader-elect-resource-lock",
	} {
		t.Run(args, func(t *testing.T) {
			work, err := newOptions()
			if err != nil {
				t.Fatal(err)
			}
			flags := pflag.NewFlagSet("pv-controller", pflag.ContinueOnError)
			work.AddFlags(flags)
			if err := flags.Parse([]string{args}); err != nil {
				t.Fatal(err)
			}
			if err := work.Complete(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Complete = %v, want an error that names %s", err, want)
			}
		})
	}
}
