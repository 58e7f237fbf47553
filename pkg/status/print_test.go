package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// fullReport has every table, with long names and a control character.
func fullReport() Report {
	long := strings.Repeat("long-name.", 12) + "\x1b[2J"
	return Report{
		Protection: ProtectionPartly, Findings: []string{strings.Repeat("finding ", 20)},
		Drivers: []Driver{{Name: long, Provisioner: Provisioner{Program: "csi-provisioner", SeenBy: "pods", Where: long,
			Version: long, Gate: "off"}, Dynamic: 1000000, Protected: 1000}},
		Leases: []Lease{{Namespace: "kube-system", Name: long, Holder: long, State: "expiredTwice", AgeSeconds: -5}},
		Journals: []Journal{{Driver: long,
			Entries: []Entry{{Claim: long, State: "unresolved", Since: "x", AgeSeconds: 7200}}}, {Driver: "d"}},
		Policy: Policy{State: "present", Bound: true, Drivers: []string{strings.Repeat("driver ", 30)}},
		Nodes: &Nodes{Labeled: 3, Protected: 2, Terminating: 1, Program: "gone", Findings: []string{strings.Repeat("node ", 30) + "\nexeunt rollback nodes"},
			Unseen: []string{strings.Repeat("right ", 30)}},
		Teardown: &Teardown{Alive: "present", Deleted: true, Phase: "Stopped", Reason: "Expired", Message: strings.Repeat("message ", 30), Remaining: 7,
			Permission: "the permission ended", Participants: []string{"a/b"}, Freeze: "inForce", Armed: "present", Runner: "laptop",
			Findings: []string{strings.Repeat("torn ", 30) + "\nexeunt why"}, Unseen: []string{strings.Repeat("policy ", 30)}},
		Loops: Loops{Writers: "both", Evidence: []string{strings.Repeat("evidence ", 30)}},
		BeforeSwitch: &BeforeSwitch{
			Deletes:       []DoomedVolume{{Name: long, Phase: "Released, Terminating", Claim: long, When: "at once"}},
			MissingRights: []string{strings.Repeat("right ", 30)},
		},
		Incomplete: []string{strings.Repeat("sentence ", 30)},
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	report := fullReport()
	text := report.text(false, 80)
	for line := range strings.Lines(text) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("%d characters: %q", len([]rune(line)), line)
		}
	}
	if strings.Contains(text+report.text(true, 80), "\x1b") {
		t.Error("text of the cluster controls the terminal")
	}
	for _, want := range []string{"PROTECTION: incomplete", "DRIVER", "LEASE", "JOURNAL", "120m", "no entries",
		"expiredTwice", "ADMISSION POLICY", "LOOPS: both", "A SWITCH DELETES", "missing right:", "incomplete:",
		"NODES: 3 with the label, 2 with the finalizer, 1 being deleted;\n  node-terminator is gone\n! node", "not seen: right",
		"TEARDOWN: Stopped, Expired: message", "! torn", "not seen: policy"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestPolicyThatWasNotSeenIsNotAbsent(t *testing.T) {
	for name, tc := range map[string]struct {
		policy Policy
		want   string
	}{
		"absent": {Policy{State: "absent"}, "absent"},
		"not served": {Policy{State: "unserved"},
			"this API server has no MutatingAdmissionPolicy, which Kubernetes 1.36 has; " +
				"a volume that is deleted at once after its policy was set to Delete is not reclaimed"},
		"without binding":        {Policy{State: "present", Binding: "absent"}, "present, without its binding"},
		"binding not seen":       {Policy{State: "present", Binding: "unseen"}, "present, its binding was not seen"},
		"list of drivers unseen": {Policy{State: "present", Bound: true, Binding: "present", List: "unseen"}, "present, its list of drivers was not seen"},
		"complete": {Policy{State: "present", Bound: true, Binding: "present", List: "present",
			Drivers: []string{"a", "b"}}, "present, for the drivers a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.policy.describe(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestWideOutputCutsNothing(t *testing.T) {
	report := fullReport()
	if text := report.text(true, 80); strings.Contains(text, "…") || !strings.Contains(text, "SEEN BY") {
		t.Errorf("wide:\n%s", text)
	}
}

func TestConclusion(t *testing.T) {
	for name, tc := range map[string]struct {
		report Report
		want   Protection
	}{
		"nothing found":      {Report{}, ProtectionOn},
		"not all was read":   {Report{Incomplete: []string{"x"}}, ProtectionUnknown},
		"something is wrong": {Report{Findings: []string{"x"}, Incomplete: []string{"x"}}, ProtectionPartly},
	} {
		t.Run(name, func(t *testing.T) {
			tc.report.conclude()
			if tc.report.Protection != tc.want {
				t.Errorf("protection = %v, want %v", tc.report.Protection, tc.want)
			}
		})
	}
}

func TestTagOfImage(t *testing.T) {
	for image, want := range map[string]string{
		"registry:5000/sig/csi-provisioner:v6.3.0":              "v6.3.0",
		"registry:5000/sig/csi-provisioner":                     "",
		"registry/csi-provisioner@sha256:0123":                  "sha256:0123",
		"registry/csi-provisioner:v6.3.0@sha256:0123":           "v6.3.0",
		"provisioner:v0.1.0":                                    "v0.1.0",
		"registry.example.com:443/exeunt/provisioner:v1-alpine": "v1-alpine",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("tagOf(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestDocumentedRightsAreRead(t *testing.T) {
	for manifest, want := range map[string]right{
		"pv-controller/rbac.yaml": {group: "coordination.k8s.io", resource: "leases", verb: "update", namespace: "kube-system", name: "pv-controller"},
		"provisioner/rbac.yaml":   {group: "coordination.k8s.io", resource: "leases", verb: "create", namespace: "storage"},
	} {
		rights, err := rightsIn(deploy.Manifests, manifest, "storage")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, right := range rights {
			found = found || right == want
		}
		if !found {
			t.Errorf("%s lacks %v: %v", manifest, want, rights)
		}
	}
}

func TestPolicyOfEveryDiscovery(t *testing.T) {
	core := []metav1.APIResource{{Name: "pods", Kind: "Pod", Verbs: []string{"list"}}}
	webhooks := []metav1.APIResource{{Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration",
		Verbs: []string{"list"}}}
	policies := append(webhooks, metav1.APIResource{Name: "mutatingadmissionpolicies", Kind: "MutatingAdmissionPolicy",
		Verbs: []string{"list"}})
	for name, tc := range map[string]struct {
		served     map[string][]metav1.APIResource
		state      string
		incomplete bool
	}{
		"policies are served":    {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": policies}, "absent", false},
		"no policies are served": {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": webhooks}, unserved, false},
		"another group does not answer": {map[string][]metav1.APIResource{"v1": core,
			"admissionregistration.k8s.io/v1": policies, "metrics.k8s.io/v1beta1": nil}, "absent", false},
		"another group does not answer, unserved": {map[string][]metav1.APIResource{"v1": core,
			"admissionregistration.k8s.io/v1": webhooks, "metrics.k8s.io/v1beta1": nil}, unserved, false},
		"the group of the policies does not answer": {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": nil}, "absent", true},
	} {
		t.Run(name, func(t *testing.T) {
			report := Read(t.Context(),
				Options{Reader: clustertest.NewReader(t, clustertest.Discovery{Served: tc.served,
					Next: clustertest.Objects{}}.ServeHTTP)})
			if report.Policy.State != tc.state || (len(report.Incomplete) > 0) != tc.incomplete {
				t.Errorf("the policy is %q, and not read was %q; want %q, %v", report.Policy.State, report.Incomplete, tc.state,
					tc.incomplete)
			}
		})
	}
}
