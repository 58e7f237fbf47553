package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// maxExplained is how many objects are explained at a time.
const maxExplained = 20

// explanations are why objects remain, as read from time to time.
type explanations struct {
	// reports are by the key of the item.
	reports map[string]explanation
	// participants are the finalizers of participants with evidence that they will not go, stuck the UIDs of objects.
	participants map[string]bool
	stuck        map[types.UID]bool
	// told is the time of the last event that an item is stuck, by its key.
	told map[string]time.Time
	// at is when objects were last explained; running: it happens now.
	at      time.Time
	running bool
}

// explanation is why one item remains.
type explanation struct {
	at       time.Time
	blockers []blocker.Blocker
	// objects are those that the item waits for, itself included.
	objects []types.UID
	since   string
}

// stuckByEvidence reports whether something shows that the item will not go.
func (e *explanation) stuckByEvidence() bool { return blocker.Worst(e.blockers) == blocker.Stuck }

// explain explains what waits, the oldest and never explained first, beside the rounds.
func (s *session) explain(ctx context.Context, v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !v.listed || s.why.running {
		return
	}
	due := cmp.Or(s.why.at, s.took).Add(s.Waits.Explain)
	remain := remainingOf(v.items)
	if len(remain) == 0 {
		return
	}
	if v.now.Before(due) {
		s.wakeAt(due)
		return
	}
	s.why.running, s.why.at = true, v.now
	slices.SortStableFunc(remain, func(a, b teardown.Item) int {
		return s.why.reports[keyOf(&a)].at.Compare(s.why.reports[keyOf(&b)].at)
	})
	asked := remain[:min(maxExplained, len(remain))]
	s.background.Go(func() {
		found := s.explainAll(ctx, asked)
		s.update(func() bool {
			s.learn(v, found)
			return true
		})
	})
}

// learn takes explanations. It is called under the lock.
func (s *session) learn(v view, found map[string]explanation) {
	w := &s.why
	w.running = false
	current := map[string]explanation{}
	for i := range v.items {
		key := keyOf(&v.items[i])
		if known, is := w.reports[key]; is {
			current[key] = known
		}
		if fresh, is := found[key]; is {
			current[key] = fresh
		}
	}
	w.reports, w.stuck, w.participants = current, map[types.UID]bool{}, map[string]bool{}
	for i := range v.items {
		known, is := current[keyOf(&v.items[i])]
		if !is || !known.stuckByEvidence() {
			continue
		}
		for _, uid := range known.objects {
			w.stuck[uid] = true
		}
		s.tellStuck(&v.items[i], &known, v.now)
		if v.items[i].Kind == teardown.Participant {
			w.participants[v.items[i].ExternalID] = true
		}
	}
	s.inventory.SetStuck(w.stuck)
}

// retell is the least time between two events about one item.
const retell = 30 * time.Minute

// tellStuck makes an event of an item that will not go, once in a while. It is called under the lock.
func (s *session) tellStuck(item *teardown.Item, known *explanation, now time.Time) {
	key := keyOf(item)
	if last, told := s.why.told[key]; told && now.Sub(last) < retell {
		return
	}
	if s.why.told == nil {
		s.why.told = map[string]time.Time{}
	}
	s.why.told[key] = now
	root := worst(known.blockers)
	s.event(v1.EventTypeWarning, "Remains", cut(fmt.Sprintf("%s %s remains: %s, %s", item.Object.Kind,
		strings.TrimPrefix(item.Object.Namespace+"/"+item.Object.Name, "/"), root.Reason, root.Object)))
}

// explainAll explains items. Those that could not be explained are missing.
func (r *Runner) explainAll(ctx context.Context, items []teardown.Item) map[string]explanation {
	found := map[string]explanation{}
	reader, err := cluster.NewReader(r.Clients.Config)
	if err != nil {
		klog.FromContext(ctx).Error(err, "What remains is not explained")
		return found
	}
	explorer := why.NewExplorer(reader, r.Commands, false)
	for i := range items {
		if ctx.Err() != nil {
			break
		}
		explained := r.explainOne(ctx, explorer, &items[i])
		explained.at = r.Clock.Now()
		found[keyOf(&items[i])] = explained
	}
	return found
}

// kinds are the resources of items.
var kinds = map[string]schema.GroupVersionResource{
	"PersistentVolume":      v1.SchemeGroupVersion.WithResource("persistentvolumes"),
	"PersistentVolumeClaim": v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	"Pod":                   v1.SchemeGroupVersion.WithResource("pods"),
	"VolumeAttachment":      {Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	"Service":               v1.SchemeGroupVersion.WithResource("services"),
	"Ingress":               {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"Gateway":               {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"},
	"VolumeSnapshot":        {Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"},
	"VolumeSnapshotContent": {Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"},
	alive.Kind:              alive.Resource,
}

// explainOne explains the object of the item; of a volume that nobody deletes yet, its claim, then the pods that use it.
func (r *Runner) explainOne(ctx context.Context, explorer *why.Explorer, item *teardown.Item) explanation {
	e := explanation{objects: []types.UID{types.UID(item.Object.UID)}}
	if item.Kind == teardown.Participant {
		report, err := explorer.Explain(ctx, cluster.Ref{Resource: alive.Resource, Kind: alive.Kind, Name: alive.Name})
		if err == nil {
			e.take(report, func(b blocker.Blocker) bool { return b.Finalizer == item.ExternalID })
		}
		return e
	}
	users := usersOf(ctx, explorer.Reader(), item)
	for _, ref := range refsOf(item, users) {
		report, err := explorer.Explain(ctx, ref)
		if err != nil || report.Verdict == blocker.Gone || len(report.Blockers) == 0 {
			continue
		}
		e.objects = append(e.objects, types.UID(report.Object.UID))
		e.take(report, func(blocker.Blocker) bool { return true })
		return e
	}
	if mirror := slices.IndexFunc(users, isMirror); mirror >= 0 {
		e.objects = append(e.objects, users[mirror].UID)
		e.blockers = append(e.blockers, mirrorBlocker(&users[mirror]).Normalized())
		return e
	}
	for _, ref := range deletedFor(item, users) {
		if found, is := r.refused(ctx, explorer.Reader(), ref); is {
			e.blockers = append(e.blockers, found.Normalized())
			return e
		}
	}
	return e
}

func refTo(kind, namespace, name string) cluster.Ref {
	return cluster.Ref{Resource: kinds[kind], Kind: kind, Namespace: namespace, Name: name}
}

// refsOf returns what may say why the item remains: its object, the claim, pods that use the claim, attachments.
func refsOf(item *teardown.Item, users []v1.Pod) []cluster.Ref {
	refs := []cluster.Ref{refTo(item.Object.Kind, item.Object.Namespace, item.Object.Name)}
	if namespace, name, is := strings.Cut(item.Claim, "/"); is {
		refs = append(refs, refTo("PersistentVolumeClaim", namespace, name))
	}
	for i := range users {
		if users[i].DeletionTimestamp != nil {
			refs = append(refs, refTo("Pod", users[i].Namespace, users[i].Name))
		}
	}
	if item.Attachment != "" {
		refs = append(refs, refTo("VolumeAttachment", "", item.Attachment))
	}
	return refs
}

// deletedFor returns what the runner deletes for the item: of a volume the claim, and before it pods that use it; of a
// kept one pods alone. What refuses one pod refuses the others, so that a few are asked about.
func deletedFor(item *teardown.Item, users []v1.Pod) (refs []cluster.Ref) {
	namespace, name, isOfClaim := strings.Cut(item.Claim, "/")
	switch {
	case item.InUse:
	case item.Object.Kind != "PersistentVolume":
		refs = append(refs, refTo(item.Object.Kind, item.Object.Namespace, item.Object.Name))
	case isOfClaim:
		refs = append(refs, refTo("PersistentVolumeClaim", namespace, name))
	}
	for i := range users[:min(len(users), 3)] {
		refs = append(refs, refTo("Pod", users[i].Namespace, users[i].Name))
	}
	return refs
}

// usersOf returns the pods that use the claim of the item, also those that nobody could delete yet.
func usersOf(ctx context.Context, reader *cluster.Reader, item *teardown.Item) (users []v1.Pod) {
	namespace, claim, is := strings.Cut(item.Claim, "/")
	if item.Object.Kind == "PersistentVolumeClaim" { // its volume is being made
		namespace, claim, is = item.Object.Namespace, item.Object.Name, true
	}
	if !is {
		return nil
	}
	pods, seen := cluster.PodsWithClaims(ctx, reader, namespace) // once for all items
	if !seen {
		return nil
	}
	for i := range pods {
		if slices.ContainsFunc(pods[i].Spec.Volumes, func(volume v1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim ||
				volume.Ephemeral != nil && pods[i].Name+"-"+volume.Name == claim
		}) {
			users = append(users, pods[i])
		}
	}
	return users
}

func isMirror(pod v1.Pod) bool { return pod.Annotations[v1.MirrorPodAnnotationKey] != "" }

// mirrorBlocker is what keeps the claim of a mirror pod: the kubelet would make the pod again (#22).
func mirrorBlocker(pod *v1.Pod) blocker.Blocker {
	name := blocker.Object{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	return blocker.Blocker{Object: name, Reason: blocker.PodUsesClaim, Verdict: blocker.Stuck,
		Holder: "the kubelet of node " + pod.Spec.NodeName,
		Evidence: []blocker.Evidence{{Source: blocker.FromAnnotation,
			Text: v1.MirrorPodAnnotationKey + " says that the kubelet runs the pod from a file, and makes it again"}},
		Next: cluster.Steps("remove the file of the pod from the folder of static pods on the node")}
}

// take takes the blockers that count.
func (e *explanation) take(report blocker.Report, counts func(blocker.Blocker) bool) {
	e.since = why.Since(report)
	for _, found := range report.Blockers {
		if !counts(found) {
			continue
		}
		e.blockers = append(e.blockers, found.Normalized())
		e.objects = append(e.objects, types.UID(found.Object.UID))
		for root := range blocker.Roots([]blocker.Blocker{found}) {
			e.objects = append(e.objects, types.UID(root.Object.UID))
		}
	}
}

// explained returns the first items as the status names them.
func (s *session) explained(items []teardown.Item) []alive.Remaining {
	s.mu.Lock()
	defer s.mu.Unlock()
	var remaining []alive.Remaining
	for i := range items[:min(alive.MaxRemaining, len(items))] {
		item := &items[i]
		one := alive.Remaining{ExternalID: cut(item.ExternalID), Object: alive.Object{Kind: item.Object.Kind,
			Namespace: item.Object.Namespace, Name: item.Object.Name, UID: types.UID(item.Object.UID)},
			Reason: cut(item.Reason), Since: timeOf(item.Created)}
		if known := s.why.reports[keyOf(item)]; len(known.blockers) > 0 {
			root := worst(known.blockers)
			one.Finalizer, one.Holder, one.Reason = root.Finalizer, cut(root.Holder), root.Reason.String()
			one.Verdict, one.Next = root.Verdict.String(), cut(root.Next)
			if since, err := time.Parse(time.RFC3339, known.since); err == nil {
				one.Since = timeOf(since)
			}
		}
		remaining = append(remaining, one)
	}
	return bounded(remaining)
}

// maxRemaining is how many bytes the remaining objects of the status have at most: each of its writes has all of them.
const maxRemaining = 48 << 10

// bounded returns as many of the objects as fit, the oldest.
func bounded(remaining []alive.Remaining) []alive.Remaining {
	size := 0
	for i := range remaining {
		text, err := json.Marshal(&remaining[i])
		if size += len(text); err != nil || size > maxRemaining {
			return remaining[:i]
		}
	}
	return remaining
}

func timeOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	rounded := metav1.NewTime(at.Truncate(time.Second))
	return &rounded
}

// worst returns the first of the roots with the worst verdict.
func worst(blockers []blocker.Blocker) blocker.Blocker {
	return slices.MaxFunc(slices.Collect(blocker.Roots(blockers)),
		func(a, b blocker.Blocker) int { return cmp.Compare(a.Verdict, b.Verdict) })
}
