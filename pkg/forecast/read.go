package forecast

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/signal"
)

// Read returns the forecast for the node. period is the value of --grace-period, "" if it is not given. What could not
// be read is named in the report.
func Read(ctx context.Context, reader *cluster.Reader, node, period string) (Report, error) {
	w, err := observe(ctx, reader, node)
	if err != nil {
		return Report{}, err
	}
	w.Period = period
	report, err := w.Of()
	report.Incomplete = append(report.Incomplete, reader.Incomplete()...)
	return report, err
}

func observe(ctx context.Context, reader *cluster.Reader, name string) (*World, error) {
	node, presence := cluster.Get(ctx, reader, cluster.Nodes, "", name)
	switch presence {
	case cluster.Absent:
		return nil, unknownNode(ctx, reader, name)
	case cluster.Unseen:
		return nil, fmt.Errorf("read node %s: %w", name, reader.Failure("get", cluster.Nodes.Resource, ""))
	case cluster.Present:
	}
	w := &World{Node: node, Ending: map[string]bool{}, Frozen: map[string]bool{}, Claims: map[string]*v1.PersistentVolumeClaim{},
		Volumes: map[string]*v1.PersistentVolume{}}
	w.Now = cluster.GotAt(ctx, reader, cluster.Nodes, "", name).Truncate(time.Second)
	w.Pods, _ = cluster.List(ctx, reader, cluster.Pods, cluster.Selection{Fields: "spec.nodeName=" + name})
	w.Budgets, _ = cluster.List(ctx, reader, cluster.PodDisruptionBudgets, cluster.Selection{})
	w.Claim = claimOf(ctx, reader, node)
	w.readAttachments(ctx, reader)
	w.readVolumes(ctx, reader)
	w.readNamespaces(ctx, reader)
	w.readFreeze(ctx, reader)
	lease, leased := cluster.Get(ctx, reader, cluster.Leases, v1.NamespaceNodeLease, name)
	at := cluster.GotAt(ctx, reader, cluster.Leases, v1.NamespaceNodeLease, name)
	w.Silent = leased == cluster.Present && blocker.JudgeLease(lease, at) != blocker.LeaseHeld
	return w, nil
}

// unknownNode returns the error for a node that does not exist, with the name that may be meant.
func unknownNode(ctx context.Context, reader *cluster.Reader, name string) error {
	var names []string
	nodes, _ := cluster.List(ctx, reader, cluster.Nodes, cluster.Selection{})
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	if meant := terminal.Closest(name, names); meant != "" {
		return fmt.Errorf("there is no node %q, did you mean %s?", name, meant)
	}
	return fmt.Errorf("there is no node %q", name)
}

// readAttachments reads the attachments of the node. They are listed once for all nodes, and of each is kept what a
// forecast tells.
func (w *World) readAttachments(ctx context.Context, reader *cluster.Reader) {
	all, _ := cluster.Search(ctx, reader, cluster.VolumeAttachments, cluster.Selection{}, "attachments",
		func(a *storagev1.VolumeAttachment) bool {
			*a = storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: a.Name, DeletionTimestamp: a.DeletionTimestamp},
				Spec:       storagev1.VolumeAttachmentSpec{NodeName: a.Spec.NodeName, Source: a.Spec.Source},
				Status:     storagev1.VolumeAttachmentStatus{Attached: a.Status.Attached},
			}
			return true
		})
	for i := range all {
		if all[i].Spec.NodeName == w.Node.Name {
			w.Attachments = append(w.Attachments, all[i])
		}
	}
}

// readVolumes reads the claims of the pods and their volumes. It lists them, once for all nodes: a read of each would
// take a node with a hundred pods seconds.
func (w *World) readVolumes(ctx context.Context, reader *cluster.Reader) {
	bound := map[string]bool{}
	for namespace, names := range w.claimNames() {
		volumes := volumesOfClaims(ctx, reader, namespace)
		for name := range names {
			if volume := volumes[name]; volume != "" {
				w.Claims[namespace+"/"+name], bound[volume] = &v1.PersistentVolumeClaim{
					Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}}, true
			}
		}
	}
	if len(bound) == 0 {
		return
	}
	local, _ := cluster.Search(ctx, reader, cluster.PersistentVolumes, cluster.Selection{}, "local volumes", isLocal)
	for i := range local {
		if bound[local[i].Name] {
			w.Volumes[local[i].Name] = &local[i]
		}
	}
}

// volumesOfClaims returns the volumes of the claims in the namespace by the names of the claims.
func volumesOfClaims(ctx context.Context, reader *cluster.Reader, namespace string) map[string]string {
	return cluster.Remember(reader, "volumes of claims in "+namespace, func(r *cluster.Reader) map[string]string {
		volumes := map[string]string{}
		cluster.Each(ctx, r, cluster.PersistentVolumeClaims, cluster.Selection{Namespace: namespace},
			func(page []v1.PersistentVolumeClaim) {
				for i := range page {
					volumes[page[i].Name] = page[i].Spec.VolumeName
				}
			})
		return volumes
	})
}

// claimNames returns the names of the claims of the pods, by namespace.
func (w *World) claimNames() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for i := range w.Pods {
		p := &w.Pods[i]
		for j := range p.Spec.Volumes {
			if name := claimName(p, &p.Spec.Volumes[j]); name != "" {
				if all[p.Namespace] == nil {
					all[p.Namespace] = map[string]bool{}
				}
				all[p.Namespace][name] = true
			}
		}
	}
	return all
}

func (w *World) readNamespaces(ctx context.Context, reader *cluster.Reader) {
	for i := range w.Pods {
		if _, known := w.Ending[w.Pods[i].Namespace]; known {
			continue
		}
		namespace, _ := cluster.Get(ctx, reader, cluster.Namespaces, "", w.Pods[i].Namespace)
		w.Ending[w.Pods[i].Namespace] = namespace != nil && namespace.DeletionTimestamp != nil
	}
}

// readFreeze finds out where the freeze of a teardown refuses new pods. Without a pod that uses a claim nothing is read.
func (w *World) readFreeze(ctx context.Context, reader *cluster.Reader) {
	for i := range w.Pods {
		if usesClaim(&w.Pods[i]) {
			w.Frozen[w.Pods[i].Namespace] = signal.ReadFreeze(ctx, reader).RefusesPodsIn(w.Pods[i].Namespace)
		}
	}
}

// claimOf returns the NodeClaim of the node, nil without one.
func claimOf(ctx context.Context, reader *cluster.Reader, node *v1.Node) *Claim {
	ref, served := reader.Find("karpenter.sh/v1", "NodeClaim", "", "")
	if !served {
		return nil
	}
	claims, _ := reader.Objects(ctx, ref.Resource, "")
	for i := range claims {
		group, _, _ := unstructured.NestedString(claims[i].Object, "spec", "nodeClassRef", "group")
		named, _, _ := unstructured.NestedString(claims[i].Object, "status", "nodeName")
		ours := group == termination.ClaimGroup
		if named != node.Name && (!ours || claims[i].GetName() != node.Name) {
			continue
		}
		period, _, _ := unstructured.NestedString(claims[i].Object, "spec", "terminationGracePeriod")
		expires, _ := termination.Expires(&claims[i]) // node-terminator ignores what cannot be read
		return &Claim{Name: claims[i].GetName(), Ours: ours, Period: period, Requested: termination.Requested(&claims[i]),
			Annotation: claims[i].GetAnnotations()[termination.ClaimTimestampAnnotation],
			Drifted:    termination.Drifted(&claims[i]), Expires: expires}
	}
	return nil
}
