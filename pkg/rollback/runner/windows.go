package runner

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/window"
)

// gate is that of graceful deletion in the API server of Exeunt.
const gate = "CustomResourceGracefulDeletion"

// readWindows reads the custom resources in their grace period that the API server serves as in etcd. That of Exeunt
// serves none, unless its gate is off: what is rewritten there would be no event for an informer that resumes its watch
// at upstream's.
func (s *observation) readWindows(ctx context.Context) {
	version, err := s.reader.Version(ctx)
	if err != nil {
		s.reader.Note("could not %v", err)
	} else {
		s.readWindowsOf(ctx)
	}
	s.awaitsServer = window.IsOurs(version) && !s.graceAsInEtcd && !s.reader.IsFeatureOff(ctx, gate)
	s.windows.unread = s.windows.unread || err != nil || s.awaitsServer
}

// readWindowsOf reads each kind of custom resources. A group that cannot be discovered is that of an aggregated API server.
func (s *observation) readWindowsOf(ctx context.Context) {
	kinds, err := s.reader.Discovery().ServerPreferredResources()
	if len(kinds) == 0 && err != nil {
		s.windows.unread = true
		s.reader.Note("could not discover the kinds of the API server: %v", err)
	}
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil || window.IsBuiltIn(version.Group) {
			continue
		}
		for _, kind := range group.APIResources {
			if slices.Contains(kind.Verbs, "list") && slices.Contains(kind.Verbs, "patch") {
				s.readWindowsOfKind(ctx, version.WithResource(kind.Name), kind.Kind)
			}
		}
	}
}

func (s *observation) readWindowsOfKind(ctx context.Context, resource schema.GroupVersionResource, kind string) {
	found := map[types.UID]bool{} // a list may begin again
	seen := s.reader.EachMetadata(ctx, resource, metav1.NamespaceAll, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			text, graceful := window.Respelled(&page[i])
			s.graceAsInEtcd = s.graceAsInEtcd || graceful
			if graceful && text != page[i].GetAnnotations()[deadline.Annotation] && !found[page[i].UID] {
				found[page[i].UID] = true
				s.addWindow(resource, kind, &page[i], text)
			}
		}
	})
	s.windows.unread = s.windows.unread || !seen
}

func (s *observation) addWindow(resource schema.GroupVersionResource, kind string, owner metav1.Object, text string) {
	object := blocker.Object{Kind: kind, Group: resource.Group, Namespace: owner.GetNamespace(), Name: owner.GetName(),
		UID: string(owner.GetUID())}
	path := "/metadata/annotations/" + patch.Escape(deadline.Annotation)
	change := patch.For(owner).TestDeletion(owner).Test(path, owner.GetAnnotations()[deadline.Annotation]).Set(path, text)
	rewrite := func(ctx context.Context) (metav1.Object, error) {
		body, err := change.Bytes()
		if err != nil {
			return nil, err
		}
		return s.reader.Dynamic().Resource(resource).Namespace(object.Namespace).
			Patch(ctx, object.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	}
	s.windows.items = append(s.windows.items, newItem(object, "annotation "+deadline.Annotation,
		rollback.Decision{Action: rollback.Rewrite, Reason: rollback.InformersUnaware}, rewrite))
}

// stepWindows rewrites deletion windows. Each rewrite is an event for the informers of controllers, whose writes
// an API server of upstream, or with the gate off, refuses while they have an object as that of Exeunt served it.
func (s *observation) stepWindows() Step {
	step := Step{Title: "Rewrite deadlines of custom resources", By: "exeunt", State: s.windows.state(),
		Items: s.windows.items}
	if s.awaitsServer {
		step.By = "you"
		step.Text = []string{"The API server is that of Exeunt: put kube-apiserver of upstream back, or turn the gate " +
			gate + " off, on each control plane, and run this command again. Deadlines stay meanwhile. That the gate is off " +
			"is read from /metrics."}
	}
	if len(step.Items) > 0 {
		step.Text = append(step.Text, fmt.Sprintf("Objects in their grace period: %d. Do not confirm while another API "+
			"server is that of Exeunt with its gate on.", len(step.Items)))
	}
	return step
}
