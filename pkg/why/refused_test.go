package why

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// refusedClaim serves a claim that was deleted an hour ago, an event about it, and a webhook for claims.
func refusedClaim(message string, ago time.Duration) clustertest.Discovery {
	deleted := metav1.NewTime(time.Now().Add(-time.Hour))
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c", DeletionTimestamp: &deleted,
			Finalizers: []string{"kubernetes.io/pvc-protection"}},
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "n", Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "c"},
		Type:           corev1.EventTypeWarning, Reason: "WriteRefused", Message: message,
		Source:        corev1.EventSource{Component: "persistentvolume-controller"},
		LastTimestamp: metav1.NewTime(time.Now().Add(-ago)),
	}
	claims := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{"*"}, Rule: admissionv1.Rule{
		APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}}}
	guard := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "w.example", Rules: []admissionv1.RuleWithOperations{claims}}}}
	return clustertest.Discovery{
		Served: map[string][]metav1.APIResource{"v1": {
			{Name: "persistentvolumeclaims", Namespaced: true, Kind: "PersistentVolumeClaim"}}},
		Next: clustertest.Objects{"persistentvolumeclaims": {claim}, "events": {event},
			"validatingwebhookconfigurations": {guard}},
	}
}

// A controller reports that its own write is refused: no probe is needed.
func TestReportedRefusalIsStuck(t *testing.T) {
	const removes = "Removing the finalizer kubernetes.io/pvc-protection failed, and is repeated with backoff: "
	const removed = "Removing the finalizer example.com/gone failed, and is repeated with backoff: "
	for name, tc := range map[string]struct {
		write, message string
		ago            time.Duration
		want           blocker.Reason // NoReason for none
		holder         string
	}{
		"webhook denies":          {removes, `admission webhook "w.example" denied the request: no`, time.Minute, blocker.AdmissionDenies, "webhook w.example of ValidatingWebhookConfiguration guard"},
		"policy denies":           {removes, `claim is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'b' denied request: no`, time.Minute, blocker.AdmissionDenies, "ValidatingAdmissionPolicy keep"},
		"webhook undoes":          {removes, "another program, such as an admission webhook, undoes this write each time", time.Minute, blocker.AdmissionDenies, "the API server"},
		"webhook does not answer": {removes, `failed calling webhook "w.example": failed to call webhook: Post "https://w.ns.svc:443/?timeout=10s": EOF`, time.Minute, blocker.AdmissionUnreachable, "webhook w.example"},
		"finalizer is gone since": {removed, "no", time.Minute, blocker.Reason(0), ""},
		"right is missing": {removes, `persistentvolumeclaims "c" is forbidden: User "u" cannot patch resource`, time.Minute,
			blocker.Reason(0), ""},
		"token has ended":     {removes + "patch claim n/c: ", "Unauthorized", time.Minute, blocker.Reason(0), ""},
		"long ago":            {removes, "no", 11 * time.Minute, blocker.Reason(0), ""},
		"before the deletion": {removes, "no", 2 * time.Hour, blocker.Reason(0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			served := refusedClaim(tc.write+tc.message, tc.ago)
			e := NewExplorer(clustertest.NewReader(t, served.ServeHTTP), cluster.Commands{}, false)
			report, err := e.Explain(t.Context(), refTo("persistentvolumeclaims", "PersistentVolumeClaim", "n", "c"))
			if err != nil {
				t.Fatal(err)
			}
			var found *blocker.Blocker
			for i, b := range report.Blockers {
				if len(b.Evidence) > 0 && strings.Contains(b.Evidence[0].Text, "WriteRefused") {
					found = &report.Blockers[i]
				}
			}
			switch {
			case tc.holder == "" && found == nil:
			case found == nil || tc.holder == "" || found.Reason != tc.want || found.Holder != tc.holder || !strings.Contains(found.Evidence[0].Text, tc.message) || found.Next == "":
				t.Errorf("the report is %+v", report)
			case found.Verdict != blocker.Stuck && tc.want == blocker.AdmissionDenies:
				t.Errorf("the verdict is %v", found.Verdict)
			}
		})
	}
}

// The deletion timestamp of an object in its grace period is ahead: what is reported before is about its deletion.
func TestRefusalInGracePeriodIsReported(t *testing.T) {
	served := refusedClaim("Removing the finalizer kubernetes.io/pvc-protection failed: no", time.Minute)
	claim := served.Next.(clustertest.Objects)["persistentvolumeclaims"][0]
	claim.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Now().Add(time.Hour))))
	claim.SetDeletionGracePeriodSeconds(ptr.To[int64](7200))
	e := NewExplorer(clustertest.NewReader(t, served.ServeHTTP), cluster.Commands{}, false)
	report, err := e.Explain(t.Context(), refTo("persistentvolumeclaims", "PersistentVolumeClaim", "n", "c"))
	if err != nil || report.Verdict != blocker.Stuck {
		t.Errorf("the report is %+v, %v; want stuck", report, err)
	}
}

// A webhook chooses the code of its denial: 404 is no sign that the object is gone.
func TestProbeNamesWebhookThatAnswersNotFound(t *testing.T) {
	served := refusedClaim("", 2*time.Hour)
	const message = `admission webhook "w.example" denied the request: no`
	reader := clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPatch {
			served.ServeHTTP(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: message,
			Details: &metav1.StatusDetails{Name: "c", Kind: "persistentvolumeclaims"}})
	})
	e := NewExplorer(reader, cluster.Commands{}, true)
	report, err := e.Explain(t.Context(), refTo("persistentvolumeclaims", "PersistentVolumeClaim", "n", "c"))
	named := slices.ContainsFunc(report.Blockers, func(b blocker.Blocker) bool {
		return b.Reason == blocker.AdmissionDenies && strings.Contains(b.Holder, "w.example")
	})
	if err != nil || !named {
		t.Errorf("the report is %+v, %v", report, err)
	}
}
