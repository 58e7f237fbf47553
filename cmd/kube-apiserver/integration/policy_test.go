package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// atMostAnHour is an admission policy that limits grace periods, for the kinds of a group.
const atMostAnHour = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%[1]q},"spec":{
	"matchConstraints":{"resourceRules":[{"apiGroups":[%[1]q],"apiVersions":["*"],"resources":["*"],"operations":["DELETE"]}]},
	"validations":[{"expression":"!has(request.options.gracePeriodSeconds) || request.options.gracePeriodSeconds <= 3600","message":"at most an hour"}]}}`

const binding = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%[1]q},"spec":{
	"policyName":%[1]q,"validationActions":["Deny"]}}`

// #18: a request that admission denies is neither written nor counted.
func TestPolicyLimitsGracePeriods(t *testing.T) {
	k := newKind(t, ours(t), "policy.example.com")
	for path, body := range map[string]string{"validatingadmissionpolicies": atMostAnHour,
		"validatingadmissionpolicybindings": binding} {
		if got := k.s.do(t, http.MethodPost, "/apis/admissionregistration.k8s.io/v1/"+path, asJSON,
			fmt.Sprintf(body, k.group)); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.text)
		}
	}
	k.create("a", finalizer)
	_, revision := k.stored("a")
	wait(t, func() error {
		got := k.delete("a", 7200, options{"dryRun": []string{"All"}})
		if got.code != http.StatusUnprocessableEntity || !strings.Contains(got.message(), "at most an hour") {
			return fmt.Errorf("the policy does not act: %d %s", got.code, got.text)
		}
		return nil
	})
	if got := k.delete("a", 7200, nil); got.code != http.StatusUnprocessableEntity || len(got.warnings) > 0 {
		t.Errorf("%d %q %s", got.code, got.warnings, got.text)
	}
	k.unchanged("a", revision)
	if got := k.metrics(); got != "" {
		t.Errorf("counted: %s", got)
	}
	k.graceful("a", 3600)
	if got := k.delete("a", 7200, nil); got.code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.code, got.text)
	}
	if got, want := k.metrics(), "granted 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
