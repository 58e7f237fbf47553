package forecast

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// Of returns the forecast. The error is a sentence for the user who gave --grace-period.
func (w *World) Of() (Report, error) {
	p, err := w.planOf()
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Node: w.Node.Name, UID: string(w.Node.UID), Now: rfc3339(w.Now), Terminating: w.terminating(),
		Requested: rfc3339(w.requested()),
		Period:    short(p.period.String()), PeriodFrom: p.from, Deadline: rfc3339(p.deadline.End),
		GraceEnds: rfc3339(p.times.GraceEnds), Stop: rfc3339(p.times.Stop), Late: p.times.Late,
		Pods: []Pod{}, Disks: w.disks(w.view(p)),
		Notes: append([]string{}, p.notes...), Incomplete: []string{},
	}
	for _, o := range w.outlooks(p) {
		found := w.forecast(o)
		if found.Misses.any() {
			r.CutShort++
		}
		r.Pods = append(r.Pods, found)
	}
	slices.SortStableFunc(r.Pods, func(a, b Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return r, nil
}

func (w *World) forecast(o *outlook) Pod {
	first, at := o.first()
	found := Pod{
		Namespace: o.pod.Namespace, Name: o.pod.Name, UID: string(o.pod.UID), Kind: o.state.Kind.String(),
		GraceSeconds: int64(pod.GraceOf(o.pod) / time.Second), First: first, FirstTime: rfc3339(at),
		Blockers: o.blockers(), Misses: o.misses(), Losses: w.losses(o),
	}
	if owner := metav1.GetControllerOf(o.pod); owner != nil {
		found.Owner = owner.Kind + "/" + owner.Name
	}
	if first != Stays && first != Ending {
		found.Forced = rfc3339(o.forced)
	}
	return found
}

// disks returns the attachments of the node.
func (w *World) disks(view pod.View) []Disk {
	found := []Disk{}
	for i := range w.Attachments {
		attachment := &w.Attachments[i]
		d := Disk{Attachment: attachment.Name, Attached: attachment.Status.Attached, Pods: []string{},
			Volume: ptr.Deref(attachment.Spec.Source.PersistentVolumeName, ""),
			Inline: attachment.Spec.Source.InlineVolumeSpec != nil}
		d.Awaited = w.awaited(&d, view)
		d.Text = diskText(d, attachment)
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b Disk) int { return strings.Compare(a.Attachment, b.Attachment) })
	return found
}

// awaited notes which pods use the disk, and reports whether the node waits for its detachment: not for an inline
// volume, and not if all its pods stay until the machine ends.
func (w *World) awaited(d *Disk, view pod.View) bool {
	stay := 0
	for i := range w.Pods {
		if p := &w.Pods[i]; w.uses(p, d.Volume) {
			d.Pods = append(d.Pods, p.Namespace+"/"+p.Name)
			switch pod.Decide(view.Observe(p, pod.Tiers{})).Reason {
			case pod.KubeletStuck, pod.WouldReturn, pod.StaticPod:
				stay++
			default:
			}
		}
	}
	return !d.Inline && (stay == 0 || stay < len(d.Pods))
}

func (w *World) uses(p *v1.Pod, volume string) bool {
	return volume != "" && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
		return w.volumeOf(p, &v) == volume
	})
}

func diskText(d Disk, attachment *storagev1.VolumeAttachment) string {
	switch {
	case attachment.DeletionTimestamp != nil:
		return "is being detached"
	case d.Inline:
		return "an inline volume: the node does not wait for it, and it is detached once the machine is proven to be off"
	case !d.Awaited:
		return "the node does not wait for it: all its pods stay until the machine ends, and then it is detached"
	case len(d.Pods) == 0:
		return "no pod of the node uses it: the node waits until it is detached"
	}
	return "the node waits until it is detached"
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// short returns a period without its last zeros: 15m for 15m0s.
func short(period string) string {
	for _, unit := range []string{"s", "m"} {
		if long, is := strings.CutSuffix(period, "0"+unit); is && long != strings.TrimRight(long, "hm") {
			period = long
		}
	}
	return period
}
