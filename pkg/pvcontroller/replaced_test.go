package pvcontroller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// A tool replaces Bound volumes by what its manifests say, without a claimRef, while claims of other users wait for
// volumes of that class and size.
func TestReplacedVolumeGoesToNoOtherClaim(t *testing.T) {
	const pairs = 5
	client := fake.NewClientset()
	for i := range pairs {
		volume, _, claim := recycledVolume(v1.VolumeBound)
		waiting := claim.DeepCopy()
		volume.Name, volume.UID = fmt.Sprint("v", i), types.UID(fmt.Sprint("v", i))
		claim.Name, claim.UID, claim.Spec.VolumeName = fmt.Sprint("owner", i), types.UID(fmt.Sprint("owner", i)), volume.Name
		claim.Annotations, claim.Status.Phase = map[string]string{storage.AnnBindCompleted: "yes"}, v1.ClaimBound
		waiting.Name, waiting.UID, waiting.Namespace = fmt.Sprint("waiting", i), types.UID(fmt.Sprint("waiting", i)), "other"
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		for _, object := range []*v1.PersistentVolumeClaim{claim, waiting} {
			if err := client.Tracker().Add(object); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Tracker().Add(volume); err != nil {
			t.Fatal(err)
		}
	}
	refuseFirstClaimRefs(client)
	volumes, err := client.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, client, record.NewFakeRecorder(1000))
	replace(t, client, pairs)
	for left := pairs; left > 0; {
		event := <-volumes.ResultChan()
		volume := event.Object.(*v1.PersistentVolume)
		ref := volume.Spec.ClaimRef
		switch {
		case ref == nil || volume.Annotations["replaced"] == "":
		case string(ref.UID) != "owner"+volume.Name[1:]:
			t.Fatalf("volume %s was given to claim %s", volume.Name, ref.UID)
		default:
			left--
		}
	}
}

// refuseFirstClaimRefs has the API server refuse the first claimRef of each volume, so that its claim is late, and gives
// each volume a new version.
func refuseFirstClaimRefs(client *fake.Clientset) {
	refused, version := map[string]bool{}, 100
	client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent := action.(clienttesting.PatchAction)
		if strings.Contains(string(sent.GetPatch()), `"add","path":"/spec/claimRef"`) && !refused[sent.GetName()] {
			refused[sent.GetName()] = true
			return true, nil, errors.New("unavailable")
		}
		_, object, err := clienttesting.ObjectReaction(client.Tracker())(action)
		if err != nil {
			return true, nil, err
		}
		volume := object.(*v1.PersistentVolume).DeepCopy()
		version++
		volume.ResourceVersion = fmt.Sprint(version)
		return true, volume, client.Tracker().Update(action.GetResource(), volume, "")
	})
}

// replace removes the claimRef of every volume.
func replace(t *testing.T, client *fake.Clientset, pairs int) {
	t.Helper()
	for i := range pairs {
		volume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), fmt.Sprint("v", i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume = volume.DeepCopy()
		volume.Spec.ClaimRef, volume.ResourceVersion = nil, "2"
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, "replaced", "yes")
		if _, err := client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
