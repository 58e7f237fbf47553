package signal

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Ended returns how the last teardown ended, of which Alive is gone: what the record and the freeze say; else nothing.
func Ended(ctx context.Context, reader *cluster.Reader, commands cluster.Commands, ref cluster.Ref) []blocker.Blocker {
	if ref.Resource.Group != alive.Group || ref.Kind != alive.Kind || ref.Name != alive.Name {
		return nil
	}
	freeze := ReadFreeze(ctx, reader)
	report, exists, err := answer.Get(ctx, teardown.ReportName, reader.Kubernetes().CoreV1().ConfigMaps(teardown.Namespace).Get)
	if !exists && !freeze.InForce() {
		return nil
	}
	b := blocker.Blocker{Object: blocker.Object{Kind: alive.Kind, Group: alive.Group, Name: alive.Name}, Reason: blocker.TeardownEnded,
		Verdict: blocker.Gone, Evidence: recorded(report, err), Next: cluster.Steps("the record names what was deleted and kept",
			commands.Kubectl(teardown.Namespace, "get", "configmap", teardown.ReportName, "-o", "jsonpath={.data}"))}
	if text := freeze.Text(); text != "" {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "%s", text))
		b.Next += "\n" + WayBack(commands)
	}
	return []blocker.Blocker{b}
}

// recorded says what the record tells. An Alive that is gone without a record that says Complete proves nothing (#57).
func recorded(report *corev1.ConfigMap, unread error) []blocker.Evidence {
	switch {
	case unread != nil:
		return []blocker.Evidence{evidence(blocker.FromField, "the record of the teardown, ConfigMap %s/%s, could not be read, so what "+
			"is left is not known: %v", teardown.Namespace, teardown.ReportName, unread)}
	case report == nil:
		return []blocker.Evidence{evidence(blocker.FromField, "there is no record of the teardown, ConfigMap %s/%s: what is left is "+
			"not known", teardown.Namespace, teardown.ReportName)}
	}
	where := report.Namespace + "/" + report.Name
	if phase := report.Annotations[teardown.PhaseAnnotation]; phase != string(teardown.Complete) {
		return []blocker.Evidence{evidence(blocker.FromField, "ConfigMap %s says %q, and not Complete: what is left is not known",
			where, phase)}
	}
	all := []blocker.Evidence{evidence(blocker.FromField, "ConfigMap %s says Complete: everything to delete was gone", where)}
	var document teardown.Document
	if json.Unmarshal([]byte(report.Data[teardown.DocumentKey]), &document) != nil {
		return all
	}
	for _, kind := range slices.Sorted(maps.Keys(document.Totals)) {
		t := document.Totals[kind]
		all = append(all, evidence(blocker.FromField, "%s: %d gone, %d kept, %d remain, %d unknown", kind, t.Gone, t.Keep, t.Remains,
			t.Unknown))
	}
	return all
}
