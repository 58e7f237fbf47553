package nodeterminator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// attachment is a VolumeAttachment, and the claim of its volume.
type attachment struct {
	*storagev1.VolumeAttachment
	// claim is namespace/name, "" for an inline volume or if the volume is not known.
	claim string
}

// inline reports whether the volume is written in a pod: no pod of another node can use it.
func (a attachment) inline() bool { return a.Spec.Source.PersistentVolumeName == nil }

// detaching reports whether the attach-detach controller began to detach the volume.
func (a attachment) detaching() bool { return a.DeletionTimestamp != nil }

// attachments are those of one node.
type attachments []attachment

func (c *Controller) attachmentsOf(name string) attachments {
	var all attachments
	for _, a := range c.caches.attachmentsOf(name) {
		one := attachment{VolumeAttachment: a}
		if volume := a.Spec.Source.PersistentVolumeName; volume != nil {
			one.claim = c.caches.claimOf(*volume)
		}
		all = append(all, one)
	}
	return all
}

// claimsOf returns namespace/name of the claims that the pod uses.
func claimsOf(p *v1.Pod) []string {
	var claims []string
	for _, volume := range p.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			claims = append(claims, p.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			claims = append(claims, p.Namespace+"/"+p.Name+"-"+volume.Name)
		}
	}
	return claims
}

// uses reports whether the volume is attached for the pod.
func (all attachments) uses(p *v1.Pod) bool {
	claims := claimsOf(p)
	return slices.ContainsFunc(all, func(a attachment) bool {
		return a.claim != "" && slices.Contains(claims, a.claim)
	})
}

// isHeld reports whether kubelet and attach-detach controller leave the volume attached because of the pod: they
// release the volumes of a pod whose containers ended.
func isHeld(view pod.View, p *v1.Pod) bool {
	end := view.EndOf(p)
	return end != pod.Finished && end != pod.ContainersEnded
}

// stranded returns the attachments that nobody detaches while the machine runs: inline volumes, and those that are used
// by pods that nobody waits for only.
func (all attachments) stranded(view pod.View, awaited, unawaited []*v1.Pod) attachments {
	uses := func(pods []*v1.Pod, claim string) bool {
		return slices.ContainsFunc(pods, func(p *v1.Pod) bool {
			return isHeld(view, p) && claim != "" && slices.Contains(claimsOf(p), claim)
		})
	}
	var stranded attachments
	for _, a := range all {
		if a.inline() || uses(unawaited, a.claim) && !uses(awaited, a.claim) {
			stranded = append(stranded, a)
		}
	}
	return stranded
}

// volumes returns what is attached to the node. While some volumes are being detached, stranded ones make the node wait
// for these first, until the machine is off.
func (all attachments) volumes(stranded attachments, proven bool) node.Volumes {
	var detaching, left, lost bool
	for _, a := range all {
		switch isStranded := stranded.has(a); {
		case a.detaching():
			detaching = true
		case isStranded:
			lost = true
		default:
			left = true
		}
	}
	switch {
	case left, lost && detaching && !proven:
		return node.Attached
	case lost:
		return node.Stranded
	case detaching:
		return node.Detaching
	}
	return node.Detached
}

func (all attachments) has(a attachment) bool {
	return slices.ContainsFunc(all, func(other attachment) bool { return other.UID == a.UID })
}

// beforeDaemons reports whether a volume is left that pods of DaemonSets must outlive.
func (all attachments) beforeDaemons(stranded attachments, pods []*v1.Pod) bool {
	return slices.ContainsFunc(all, func(a attachment) bool {
		return !stranded.has(a) && !slices.ContainsFunc(pods, func(p *v1.Pod) bool {
			return pod.KindOf(p) == pod.Daemon && slices.Contains(claimsOf(p), a.claim)
		})
	})
}

// report returns the attachments for the report.
func (all attachments) report(stranded attachments) []termination.ReportVolume {
	var volumes []termination.ReportVolume
	for _, a := range all {
		one := termination.ReportVolume{Attachment: a.Name, State: "Attached"}
		if !a.inline() {
			one.Volume = *a.Spec.Source.PersistentVolumeName
		}
		switch {
		case a.Status.DetachError != nil:
			one.State = "DetachFailed: " + a.Status.DetachError.Message
		case a.detaching():
			one.State = "Detaching"
		case stranded.has(a):
			one.State = "Stranded"
		}
		volumes = append(volumes, one)
	}
	slices.SortFunc(volumes, func(a, b termination.ReportVolume) int {
		return strings.Compare(a.Attachment, b.Attachment)
	})
	return volumes
}

// attachedNodes reads live which nodes have volumes attached. VolumeAttachments cannot be selected by node, so all that ask
// while a list is on its way share the next one.
type attachedNodes struct {
	mu      sync.Mutex
	running bool
	next    *attachedList
}

// attachedList is the answer to those who wait for one list.
type attachedList struct {
	done  chan struct{}
	nodes sets.Set[string]
	err   error
}

// read returns the nodes with an attachment, of a list that begins after the call.
func (a *attachedNodes) read(ctx context.Context, client kubernetes.Interface) (sets.Set[string], error) {
	a.mu.Lock()
	if a.next == nil {
		a.next = &attachedList{done: make(chan struct{})}
	}
	list := a.next
	if !a.running {
		a.running = true
		go a.run(client)
	}
	a.mu.Unlock()
	select {
	case <-list.done:
		return list.nodes, list.err
	case <-ctx.Done():
		return nil, fmt.Errorf("list VolumeAttachments: %w", ctx.Err())
	}
}

// run lists for as long as somebody asks.
func (a *attachedNodes) run(client kubernetes.Interface) {
	for {
		a.mu.Lock()
		list := a.next
		a.next = nil
		a.running = list != nil
		a.mu.Unlock()
		if list == nil {
			return
		}
		list.nodes, list.err = listAttached(client)
		close(list.done)
	}
}

// attachedTimeout is how long a list may take: other nodes wait for it.
const attachedTimeout = 10 * time.Second

func listAttached(client kubernetes.Interface) (sets.Set[string], error) {
	ctx, cancel := context.WithTimeout(context.Background(), attachedTimeout)
	defer cancel()
	nodes, options := sets.New[string](), metav1.ListOptions{Limit: 500}
	for {
		page, err := client.StorageV1().VolumeAttachments().List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list VolumeAttachments: %w", err)
		}
		for i := range page.Items {
			nodes.Insert(page.Items[i].Spec.NodeName)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nodes, nil
		}
	}
}
