package runner

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// refused returns why the API server refuses the deletion of an object that nobody could delete yet (#67). It asks in a
// dry run.
func (r *Runner) refused(ctx context.Context, reader *cluster.Reader, ref cluster.Ref) (blocker.Blocker, bool) {
	err := reader.Dynamic().Resource(ref.Resource).Namespace(ref.Namespace).Delete(ctx, ref.Name,
		metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return blocker.Blocker{}, false
	}
	status := answered.Status()
	found := blocker.Blocker{Object: blocker.Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name},
		Verdict:  blocker.Unknown,
		Evidence: []blocker.Evidence{{Source: blocker.FromProbe, Text: "a deletion in a dry run is refused: " + status.Message}}}
	configurations := "validatingwebhookconfigurations,mutatingwebhookconfigurations"
	switch refusal.Classify(status) {
	case refusal.WebhookUnreachable:
		found.Reason, found.Holder = blocker.AdmissionUnreachable, "webhook "+refusal.Webhook(status.Message)
		found.Next = cluster.Steps("start the webhook, or remove its configuration", r.Commands.Kubectl("", "get", configurations))
	case refusal.WebhookDenies:
		found.Reason, found.Holder = blocker.AdmissionDenies, "webhook "+refusal.Webhook(status.Message)
		found.Next = cluster.Steps("change the object or the webhook, as the message says",
			r.Commands.Kubectl("", "get", configurations))
	case refusal.PolicyDenies:
		name := refusal.Policy(status.Message)
		found.Reason, found.Holder = blocker.AdmissionDenies, "ValidatingAdmissionPolicy "+name
		found.Next = cluster.Steps("change the object or the policy, as the message says",
			r.Commands.Kubectl("", "get", "validatingadmissionpolicy", name, "-o", "yaml"))
	default:
		return blocker.Blocker{}, false
	}
	return found, true
}
