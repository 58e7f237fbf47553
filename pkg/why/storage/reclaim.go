package storage

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// reclaimed is the observed state of a released volume whose driver has to delete the disk.
type reclaimed struct {
	*volumeChain
	state   volume.ReclaimState
	finding holder.Finding
	// finalizer keeps the volume until its disk is deleted, "" for none.
	finalizer string

	attached    []blocker.Blocker
	sharing     []corev1.PersistentVolume // other volumes on the disk
	served      []blocker.Evidence        // who holds the leader Lease of the provisioner
	secret      secretRef
	entries     []entry
	failure     []blocker.Evidence
	failedSince string
}

// reclaim explains a released volume whose CSI driver has to delete the disk.
func (c *volumeChain) reclaim(ctx context.Context) []blocker.Blocker {
	r := &reclaimed{volumeChain: c, finding: look(ctx, c, string(finalizer.External), "PersistentVolume", "", c.driver)}
	if finalizer.Has(c.typed.Finalizers, finalizer.External) {
		r.finalizer = string(finalizer.External)
	} else if reclaim.StatusOf(c.typed) == reclaim.StatusPending {
		r.finalizer = string(finalizer.VolumeProtection)
		server, facts := serverOf(ctx, c, r.finding, c.driver)
		if judgment := volume.Takeover(server); judgment.Reason != blocker.ControllerActs {
			return r.keepForClaim(ctx, []blocker.Blocker{r.tooLate(judgment, facts)})
		}
	}
	r.observe(ctx)
	var all []blocker.Blocker
	for _, judgment := range volume.Reclaim(r.state) {
		all = append(all, r.blockersOf(judgment)...)
	}
	for i := range all {
		all[i].Evidence = append(all[i].Evidence, r.unchecked(all[i].Reason)...)
	}
	return r.keepForClaim(ctx, all)
}

// observe reads what may keep the driver from deleting the disk.
func (r *reclaimed) observe(ctx context.Context) {
	r.state.Failed = r.typed.Status.Phase == corev1.VolumeFailed
	r.state.Provisioner = r.finding.State
	r.state.Server, r.served = serverOf(ctx, r, r.finding, r.driver)
	attachments, seen := r.attachments(ctx)
	r.state.Attached = volume.FactOf(len(attachments) > 0, seen)
	r.attached = r.attachedTo(ctx, attachments, r.finalizer)
	r.secret = secretOf(r.typed)
	r.state.Secret = r.secret.observe(ctx, r.Reader())
	r.entries, r.state.Journal = journalOf(ctx, r, r.typed.Spec.ClaimRef)
	r.state.Feature = volume.FeatureOn
	if r.finalizer == string(finalizer.External) {
		r.state.Feature = featureOf(r.finding)
	}
	r.observeNode(ctx)
	r.observeFailure(ctx)
	r.observeSharing(ctx)
}

// observeFailure reads the errors of the deletion. Of a Failed volume the message is an error of
// an in-tree plugin, which is repeated: no provisioner of a CSI driver writes the phase.
func (r *reclaimed) observeFailure(ctx context.Context) {
	if v := r.typed; v.Status.Phase == corev1.VolumeFailed && v.Status.Message != "" &&
		volume.IsRefusal(v.Status.Message) {
		if r.driver == "" && r.external == "" {
			r.state.Error = volume.Yes
		}
		r.failure = append(r.failure, evidence(blocker.FromField, "status.phase is Failed: %s", v.Status.Message))
	}
	events, seen := cluster.EventsOf(ctx, r.Reader(), "PersistentVolume", r.typed)
	last := lastOf(sentBy(events, r.deleters(), r.driver), "VolumeFailedDelete", "VolumeDelete")
	failed := last != nil && last.Reason == "VolumeFailedDelete" && isRecent(r.Reader(), cluster.EventTime(*last)) &&
		volume.IsRefusal(last.Message)
	r.state.Error = max(r.state.Error, volume.FactOf(failed, seen))
	if last != nil {
		r.failure = append(r.failure, evidence(blocker.FromEvent, "%s", eventText(*last)))
	}
	if failed && !last.FirstTimestamp.IsZero() {
		r.failedSince = blocker.Time(last.FirstTimestamp.Time)
	}
}

// deleters returns the controllers whose events tell of the deletion of the disk.
func (r *reclaimed) deleters() []families.Controller {
	switch {
	case r.external != "":
		return []families.Controller{families.Provisioner(r.external)}
	case r.driver == "":
		return binders()
	}
	return provisioners()
}

// lastOf returns the last event with one of the reasons, nil for none. Events are sorted by time.
func lastOf(events []corev1.Event, reasons ...string) *corev1.Event {
	for i := len(events) - 1; i >= 0; i-- {
		if slices.Contains(reasons, events[i].Reason) {
			return &events[i]
		}
	}
	return nil
}

// secretRef names the secret of a deletion; the zero value names none.
type secretRef struct{ namespace, name string }

// secretOf returns the secret that the volume names for its deletion.
func secretOf(v *corev1.PersistentVolume) secretRef {
	return secretRef{v.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"],
		v.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"]}
}

// observe reads whether the secret exists, and not what it holds.
func (s secretRef) observe(ctx context.Context, r *cluster.Reader) volume.Secret {
	if s.name == "" || s.namespace == "" {
		return volume.SecretFine
	}
	switch r.Exists(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), s.namespace, s.name) {
	case cluster.Present:
		return volume.SecretFine
	case cluster.Unseen:
		return volume.SecretUnseen
	case cluster.Absent:
	}
	namespace, presence := cluster.Get(ctx, r, cluster.Namespaces, "", s.namespace)
	switch {
	case presence == cluster.Unseen:
		return volume.SecretMissingMaybe
	case namespace == nil || isDeleted(namespace):
		return volume.SecretFine // it cannot be created again: the driver is called without it
	}
	return volume.SecretMissing
}

func isDeleted(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

// plugin explains a released volume whose in-tree plugin has to delete the disk.
func (c *volumeChain) plugin(ctx context.Context) []blocker.Blocker {
	name := ""
	if finalizer.Has(c.typed.Finalizers, finalizer.InTree) {
		name = string(finalizer.InTree)
	}
	r := &reclaimed{volumeChain: c, finalizer: name, finding: look(ctx, c, string(finalizer.InTree), "PersistentVolume",
		"", "")}
	r.observeFailure(ctx)
	judgment := volume.Plugin(volume.PluginState{
		Missing: c.typed.Status.Phase == corev1.VolumeFailed && volume.SaysPluginMissing(c.typed.Status.Message),
		Error:   r.state.Error, Controller: r.finding.State,
	})
	return r.keepForClaim(ctx, []blocker.Blocker{r.blockerOf(judgment)})
}

// externally explains a released volume whose disk a provisioner without a CSI driver has to delete.
func (c *volumeChain) externally(ctx context.Context) []blocker.Blocker {
	name := ""
	if finalizer.Has(c.typed.Finalizers, finalizer.External) {
		name = string(finalizer.External)
	}
	r := &reclaimed{volumeChain: c, finalizer: name, finding: c.Holders().Look(ctx, families.Provisioner(c.external), "")}
	r.observeFailure(ctx)
	b := r.blockerOf(volume.Plugin(volume.PluginState{External: true, Error: r.state.Error, Controller: r.finding.State}))
	b.Evidence = append([]blocker.Evidence{
		evidence(blocker.FromField, "annotation %s is %s, which deletes the disk: Kubernetes does not",
			storage.AnnDynamicallyProvisioned, c.external),
	}, b.Evidence...)
	return r.keepForClaim(ctx, []blocker.Blocker{b})
}

// provisionerOf returns the name of the plugin or driver, for texts.
func (c *volumeChain) provisionerOf() string {
	if c.driver != "" {
		return c.driver
	}
	if name := c.typed.Annotations[storage.AnnDynamicallyProvisioned]; name != "" {
		return name
	}
	return "the in-tree plugin of the volume"
}

// observeNode finds out whether the node of the volume exists, if the provisioner runs on each
// node: no other node deletes the disk. What a program says of which nothing tells the driver
// is no proof.
func (r *reclaimed) observeNode(ctx context.Context) {
	r.state.Node = volume.Yes
	running := programs(r.finding, serves)
	guessed := len(running) == 0
	if guessed {
		running = programs(r.finding, func(container holder.Container) bool { return container.Guessed })
	}
	central := slices.ContainsFunc(running, func(p volume.Program) bool { return !p.RunsPerNode() })
	if len(running) == 0 || central {
		return
	}
	nodes, seen := cluster.Search(ctx, r.Reader(), cluster.Nodes, cluster.Selection{}, "labels of nodes",
		func(n *corev1.Node) bool {
			*n = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
				Status: corev1.NodeStatus{Conditions: n.Status.Conditions}}
			return true
		})
	r.state.Node = volume.NodeOf(r.typed.Spec.NodeAffinity, nodes, seen && !guessed)
}

// nodeGone completes the blocker of a volume whose node does not exist.
func (r *reclaimed) nodeGone(b *blocker.Blocker) {
	b.Holder = "the administrator of the node of the volume"
	b.Evidence = append(b.Evidence, evidence(blocker.FromList,
		"the provisioner runs with --node-deployment, on each node for the volumes of that node, and no node fits spec.nodeAffinity of the volume"))
	b.Next = cluster.Steps("bring the node of the volume back",
		r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "jsonpath={.spec.nodeAffinity}"))
	if last := r.Holders().RemovalStep(r.object, r.finalizer,
		"only if the node never comes back: its disk is not deleted, and no object tells of it any more"); last != "" {
		b.Next += "\n" + last
	}
}
