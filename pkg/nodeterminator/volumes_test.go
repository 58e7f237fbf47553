package nodeterminator

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// attachedFor returns an attachment of the volume of the claim "ns/NAME", an inline one without a name.
func attachedFor(name string, detaching bool) attachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name, UID: types.UID(name)}}
	if detaching {
		a.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	if name == "" {
		return attachment{VolumeAttachment: a}
	}
	a.Spec.Source.PersistentVolumeName = &name
	return attachment{VolumeAttachment: a, claim: "ns/" + name}
}

// using returns a pod with the claim.
func using(claim string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-of-" + claim}}
	p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func finished(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }

func daemon(p *v1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
}

func TestVolumes(t *testing.T) {
	one, ended := []*v1.Pod{using("a")}, []*v1.Pod{using("a", finished)}
	a, b, inline := attachedFor("a", false), attachedFor("b", true), attachedFor("", false)
	for name, tc := range map[string]struct {
		all                attachments
		awaited, unawaited []*v1.Pod
		proven             bool
		want               node.Volumes
	}{
		"nothing attached":                       {want: node.Detached},
		"#40 the pod is gone":                    {all: attachments{a}, want: node.Attached},
		"#40 the pod is awaited":                 {all: attachments{a}, awaited: one, want: node.Attached},
		"#41 nobody waits for the pod":           {all: attachments{a}, unawaited: one, want: node.Stranded},
		"#41 an inline volume":                   {all: attachments{inline}, want: node.Stranded},
		"one pod of two is awaited":              {all: attachments{a}, awaited: one, unawaited: one, want: node.Attached},
		"#23 the kubelet unmounts finished pods": {all: attachments{a}, unawaited: ended, want: node.Attached},
		"detaching":                              {all: attachments{b}, want: node.Detaching},
		"stranded volumes wait for others":       {all: attachments{inline, b}, want: node.Attached},
		"after the proof they do not":            {all: attachments{inline, b}, proven: true, want: node.Stranded},
		"attached and stranded":                  {all: attachments{a, inline}, want: node.Attached},
	} {
		stranded := tc.all.stranded(pod.View{}, tc.awaited, tc.unawaited)
		if got := tc.all.volumes(stranded, tc.proven); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestDaemonsOutliveVolumesOfOthers(t *testing.T) {
	a := attachments{attachedFor("a", true)}
	for name, tc := range map[string]struct {
		pods     []*v1.Pod
		stranded attachments
		want     bool
	}{
		"a volume whose pod is gone":    {want: true},
		"a volume of an ordinary pod":   {pods: []*v1.Pod{using("a")}, want: true},
		"a volume of a DaemonSet":       {pods: []*v1.Pod{using("a", daemon)}},
		"a volume that nobody detaches": {stranded: a},
	} {
		if got := a.beforeDaemons(tc.stranded, tc.pods); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestClaimsOfPod(t *testing.T) {
	p := using("a")
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "scratch",
		VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
	got := attachments{attachedFor("pod-of-a-scratch", false)}
	if !got.uses(p) || got.uses(using("b")) {
		t.Errorf("claims %v", claimsOf(p))
	}
}
