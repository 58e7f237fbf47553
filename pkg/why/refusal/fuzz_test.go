package refusal_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// Any message has a known kind, quoted names are part of the message, and messages of other
// codes never say that an object is damaged.
func FuzzClassify(f *testing.F) {
	f.Add(`Internal error occurred: failed calling webhook "x.example.com": Post "https://svc.ns.svc:443/x?timeout=10s"`,
		int32(500), "InternalError", "svc")
	f.Add("ValidatingAdmissionPolicy 'p' with binding 'b' denied request", int32(422), "Invalid", "")
	f.Add("no matching prefix found", int32(500), "", "ns")
	f.Add(`webhook "`, int32(-1), "", "'")
	f.Fuzz(func(t *testing.T, message string, code int32, reason, service string) {
		kind := Classify(metav1.Status{Message: message, Code: code, Reason: metav1.StatusReason(reason)})
		known := []Kind{Unclear, WebhookUnreachable, WebhookDenies, PolicyDenies, NoDryRun, SchemaViolated, Damaged,
			ConversionFails}
		if !slices.Contains(known, kind) || kind == Damaged && code != 500 {
			t.Errorf("kind of %q with code %d = %v", message, code, kind)
		}
		if name := Webhook(message); name != "" && !strings.Contains(message, `webhook "`+name+`"`) {
			t.Errorf("webhook of %q = %q", message, name)
		}
		if name := Policy(message); name != "" && !strings.Contains(message, "ValidatingAdmissionPolicy '"+name+"'") {
			t.Errorf("policy of %q = %q", message, name)
		}
		if Calls(message, "ns", service) && !strings.Contains(message, `"https://`+service+".ns.svc") {
			t.Errorf("%q is taken for a call of service %q", message, service)
		}
	})
}
