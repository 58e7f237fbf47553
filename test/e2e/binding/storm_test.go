package binding

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// lives is how often an object of one name is made and deleted again in a storm.
const lives = 100

func TestRepeatedlyRecreatedPairCostsBoundedRequests(t *testing.T) {
	s := harness.Join(t, harness.Setup{}, harness.Within(2*harness.Timeout))
	volume := s.Namespace + "-stormy"
	for range lives {
		raise(s, volume)
		strike(s, volume)
	}
	raise(s, volume)
	bound := s.AwaitBound("stormy")
	if bound.Name != volume {
		t.Errorf("the claim is bound to %s, want %s", bound.Name, volume)
	}
	s.PassQueues()
	mine := func(e sandbox.Event) bool {
		return e.Name == volume || e.Namespace == s.Namespace && e.Name == "stormy"
	}
	expectRequests(s, mine, 12*(lives+1))
	before := s.CountRequests(mine)
	s.PassQueues()
	if after := s.CountRequests(mine); after != before {
		t.Errorf("%d requests for a pair that is settled", after-before)
	}
}

// raise makes a claim and a volume that name each other; one of the last life may
// still be going.
func raise(s *harness.Session, volume string) {
	s.T.Helper()
	for {
		_, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, s.NewVolume("stormy", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "stormy"}
		}), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.Must(err, "create volume")
			break
		}
		s.AwaitVolumeGone(volume)
	}
	for {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Ctx, s.NewClaim("stormy", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.Must(err, "create claim")
			return
		}
		s.AwaitClaimGone("stormy")
	}
}

// strike deletes both.
func strike(s *harness.Session, volume string) {
	s.T.Helper()
	s.DeleteVolume(volume)
	s.DeleteClaim("stormy")
}

// expectRequests bounds the requests of our programs that are such.
func expectRequests(s *harness.Session, such func(sandbox.Event) bool, most int) {
	s.T.Helper()
	got := s.CountRequests(such)
	s.T.Logf("%d requests, of at most %d", got, most)
	if got > most {
		s.T.Errorf("%d requests, want at most %d: something runs in circles", got, most)
	}
}

// nonsense is an object that the API server takes and nobody can serve.
type nonsense struct {
	claim  func(*v1.PersistentVolumeClaim)
	volume func(*v1.PersistentVolume)
	// event is the reason of the event on the claim, "" for one that upstream is
	// silent about too; says is part of its message.
	event, says string
}

func TestInvalidObjectsGetEventsAndCostBoundedRequests(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, tc := range map[string]nonsense{
		"a volume of one byte is no match": {
			volume: withSize("1"), claim: func(*v1.PersistentVolumeClaim) {}, event: "ProvisioningFailed", says: "not found"},
		"a claim that names a volume of one byte": {
			volume: withSize("1"), claim: names("fault"), event: "VolumeMismatch", says: "too small"},
		"a claim of more bytes than there are": {
			volume: withSize("1Mi"), claim: asks("9223372036854775807"), event: "ProvisioningFailed", says: "not found"},
		"a claim of more than bytes can count": {
			volume: withSize("1e30"), claim: asks("1e31"), event: "ProvisioningFailed", says: "not found"},
		"a claim that names itself": {
			volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = c.Name }},
		"a claim that names a volume of somebody else": {
			volume: refersTo("somebody"), claim: names("fault"), event: "FailedBinding", says: "somebody"},
		"a volume that refers to a claim of another UID": {
			volume: refersTo("claim", "of-another-life"), claim: names("fault"), event: "FailedBinding", says: "claim"},
		"a volume of another mode than the claim that it refers to": {
			volume: func(v *v1.PersistentVolume) {
				block := v1.PersistentVolumeBlock
				v.Spec.VolumeMode = &block
				refersTo("claim")(v)
			}, claim: func(*v1.PersistentVolumeClaim) {}, event: "ProvisioningFailed", says: "not found"},
		"a selector that nothing can satisfy": {
			volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
				c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "a", Operator: metav1.LabelSelectorOpExists}, {Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			}, event: "ProvisioningFailed", says: "not found"},
		"a claim that says it was bound, to nothing": {
			volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{storage.AnnBindCompleted: "yes"}
			}, event: "ClaimLost", says: "lost reference to PersistentVolume"},
		"a claim that says it was bound, to what never was": {
			volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
				c.Annotations, c.Spec.VolumeName = map[string]string{storage.AnnBindCompleted: "yes"}, "nowhere"
			}, event: "ClaimLost", says: "nowhere"},
		"a capacity before resizing that is no number": {
			volume: func(v *v1.PersistentVolume) {
				v.Annotations = map[string]string{storage.AnnPreResizeCapacity: "much"}
			}, claim: func(*v1.PersistentVolumeClaim) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			tc.play(s)
		})
	}
}

func (tc nonsense) play(s *harness.Session) {
	s.T.Helper()
	volume := s.CreateVolume("fault", v1.PersistentVolumeReclaimRetain, withSize("1Mi"), tc.volume)
	claim := s.CreateClaim("claim", s.Namespace, tc.claim)
	if tc.event != "" {
		if message := s.AwaitEvent(claim, tc.event); !strings.Contains(message, tc.says) {
			s.T.Errorf("the event %s does not say %q: %s", tc.event, tc.says, message)
		}
	}
	s.PassQueues()
	s.PassQueues()
	expectRequests(s, func(e sandbox.Event) bool {
		return e.Name == volume.Name || e.Namespace == s.Namespace && e.Name == "claim"
	}, 12)
}

// names has the claim name the volume with the handle.
func names(handle string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = c.Namespace + "-" + handle }
}

func asks(size string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse(size)
	}
}

// refersTo has the volume refer to a claim in a namespace, by UID if there is one.
func refersTo(claim string, uid ...types.UID) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: v.Spec.StorageClassName, Name: claim}
		for _, uid := range uid {
			v.Spec.ClaimRef.UID = uid
		}
	}
}
