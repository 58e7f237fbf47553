package load

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestTokenFileHasAllUsers(t *testing.T) {
	tokens, file, err := newTokens()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]string{}
	for _, line := range lines {
		if tokens[line[1]] != line[0] {
			t.Errorf("the token of %s differs", line[1])
		}
		users[line[1]] = line[3]
	}
	if len(users) != len(tokens) || users[Admin] != "system:masters" {
		t.Errorf("users %v", users)
	}
	if groups := users[sandbox.ProvisionerAccount.Name()]; !strings.Contains(groups,
		"system:serviceaccounts:exeunt-system") {
		t.Errorf("the provisioner is in %s", groups)
	}
}

func TestOnlyUpstreamHasDefaultLimits(t *testing.T) {
	for _, tc := range []struct {
		side     plan.Side
		defaults bool
		process  string
		want     string
	}{
		{plan.Upstream, true, measure.Loops, "--kube-api-qps=20 --kube-api-burst=30"},
		{plan.Upstream, true, measure.Sidecar, "--kube-api-qps=5 --kube-api-burst=10"},
		{plan.Upstream, true, measure.Collector, "--kube-api-qps=20 --kube-api-burst=30"},
		{plan.Upstream, false, measure.Sidecar, ""},
		{plan.Ours, true, measure.Loops, ""},
	} {
		p := &Programs{turn: plan.Turn{Scenario: plan.Scenario{Defaults: tc.defaults}, Side: tc.side}}
		if got := strings.Join(p.limits(tc.process), " "); got != tc.want {
			t.Errorf("limits of %s %s: %q, want %q", tc.side, tc.process, got, tc.want)
		}
	}
}

func TestFaultsOfDriver(t *testing.T) {
	for want, s := range map[string]plan.Scenario{
		"": {Kind: plan.Storm},
		"[{method: CreateVolume, latency: 2s}, {method: DeleteVolume, latency: 2s}]": {Kind: plan.Storm, DriverLatency: 2 * time.Second},
		"[{method: DeleteVolume, code: Internal}]":                                   {Kind: plan.Failing},
	} {
		if got := faultsOf(s); got != want {
			t.Errorf("faults %q, want %q", got, want)
		}
	}
}
