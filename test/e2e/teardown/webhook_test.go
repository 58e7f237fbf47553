package teardown

import (
	"context"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Row 67: a webhook whose server is gone refuses each deletion of one claim.
func TestDeadWebhookIsNamed(t *testing.T) {
	r := newRig(t, harness.Setup{Teardown: true})
	refused := r.addDynamic("refused", harness.DeleteClass, func(c *v1.PersistentVolumeClaim) {
		c.Labels = map[string]string{"guarded": "yes"}
	})
	free := r.addDynamic("free", harness.DeleteClass)
	_, err := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(r.Ctx, deadWebhook(),
		metav1.CreateOptions{})
	r.Must(err, "create webhook")

	ctx, stop := context.WithTimeout(r.Ctx, time.Minute)
	defer stop()
	config := r.config()
	config.Follow = func(p runner.Progress) {
		if p.Phase == core.TearingDown && p.Left[string(core.Volume)] == 1 {
			stop()
		}
	}
	work := runner.New(config)
	if outcome, err := work.Teardown(ctx, runner.Word{Timeout: time.Hour}); err == nil {
		t.Fatalf("the teardown ended with %+v", outcome)
	}
	document, err := work.Report(r.Ctx)
	r.Must(err, "report")
	r.expectDisks(keep(refused), free)
	i := slices.IndexFunc(document.Items, func(item core.Item) bool { return item.Object.Name == refused.volume })
	if i < 0 || document.Items[i].Fate != core.Remains || !slices.ContainsFunc(document.Items[i].Blockers,
		func(b blocker.Blocker) bool { return b.Reason == blocker.AdmissionUnreachable }) {
		t.Errorf("the report says %+v", document.Items)
	}
}

func deadWebhook() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gone"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "gone.example.com", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
			SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: new(admissionv1.Fail),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}},
			ClientConfig:   admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"persistentvolumeclaims"}}}},
		}}}
}
