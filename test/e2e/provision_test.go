package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// createClass makes a class of the test's own, named like its namespace.
func (s *scene) createClass(change ...func(*storagev1.StorageClass)) {
	s.t.Helper()
	class := newClass(s.namespace, s.driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	for _, f := range change {
		f(&class)
	}
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
}

// beside gives the test a driver and a provisioner of its own, with further flags,
// beside the others of the cluster.
func (s *scene) beside(name, driver, provisioner string) *scene {
	s.t.Helper()
	return s.besideAs("", name, driver, provisioner)
}

// besideAs is beside with the rights of the kubeconfig, "" for our own.
func (s *scene) besideAs(kubeconfig, name, driver, provisioner string) *scene {
	s.t.Helper()
	own := *s.cluster
	own.dir = s.t.TempDir()
	var err error
	own.driver, err = sandbox.StartDriver(s.ctx, sandbox.DriverConfig{Binaries: binaries(), Dir: own.dir, Name: name, Args: strings.Fields(driver)})
	s.must(err, "start driver")
	s.t.Cleanup(func() { s.end(own.driver) })
	own.provisioner, err = s.plane.StartProvisioner(s.ctx, own.driver, sandbox.Controller{Name: name, Kubeconfig: kubeconfig, HonorReclaimPolicy: true, Args: strings.Fields(provisioner)})
	s.must(err, "start provisioner")
	s.t.Cleanup(func() { s.end(own.provisioner) })
	return &scene{cluster: &own, t: s.t, ctx: s.ctx, namespace: s.namespace}
}

// end stops what a test has started, which must still have been there.
func (s *scene) end(process interface{ Stop(context.Context) error }) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := process.Stop(ctx); err != nil {
		s.t.Errorf("stop: %v", err)
	}
}

// inStorage returns the volume as the storage system knows it.
func (s *scene) inStorage(volume *v1.PersistentVolume) csimock.Volume {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "*.volumes"))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("find the storage system's volumes: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	s.must(err, "read the storage system's volumes")
	var state struct{ Volumes []csimock.Volume }
	s.must(json.Unmarshal(data, &state), "decode the storage system's volumes")
	i := slices.IndexFunc(state.Volumes, func(v csimock.Volume) bool { return v.ID == handle(volume) })
	if i < 0 {
		s.t.Fatalf("the storage system does not have %s", handle(volume))
	}
	return state.Volumes[i]
}

// events returns the messages of all events about the object with the reason.
func (s *scene) events(object metav1.Object, reason string) []string {
	s.t.Helper()
	list, err := s.client.CoreV1().Events(s.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object.GetName() + ",reason=" + reason})
	s.must(err, "list events")
	var messages []string
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

func TestFileSystemsAndBlockVolumesAreMadeAsTheClassSays(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/fstype": "xfs", "tier": "gold"}
		c.MountOptions = []string{"noatime"}
	})
	s.createClaim("files", s.namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	})
	block := v1.PersistentVolumeBlock
	s.createClaim("block", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	files, raw := s.awaitBound("files"), s.awaitBound("block")
	if files.Spec.CSI.FSType != "xfs" || files.Spec.MountOptions[0] != "noatime" || files.Spec.AccessModes[0] != v1.ReadWriteOncePod {
		t.Errorf("the file system is %+v", files.Spec)
	}
	if raw.Spec.CSI.FSType != "" || *raw.Spec.VolumeMode != block {
		t.Errorf("the block volume is %+v", raw.Spec)
	}
	if got := s.inStorage(files).Parameters; len(got) != 1 || got["tier"] != "gold" {
		t.Errorf("the driver got the parameters %v", got)
	}
}

func TestACloneIsMadeFromAVolumeThatIsProtectedMeanwhile(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	clone := func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "origin"}
	}
	waiting := s.createClaim("clone", deleteClass, clone)
	if message := s.awaitEvent(waiting, "ProvisioningFailed"); !strings.Contains(message, "does not exist") {
		t.Errorf("the event does not say that the source is missing: %s", message)
	}
	s.createClaim("origin", deleteClass)
	origin, cloned := s.awaitBound("origin"), s.awaitBound("clone")
	if got := s.inStorage(cloned).Source.Volume; got != handle(origin) {
		t.Errorf("the clone was made from %q, want %s", got, handle(origin))
	}
	s.deleteClaim("origin")
	s.awaitClaimGone("origin") // the finalizer that protected it is off
}

func TestTheParametersOfAnAttributesClassReachTheDriverOnceItExists(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	claim := s.createClaim("claim", deleteClass, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &s.namespace })
	if message := s.awaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, s.namespace) {
		t.Errorf("the event does not name the class: %s", message)
	}
	_, err := s.client.StorageV1().VolumeAttributesClasses().Create(s.ctx, &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, DriverName: s.driver.DriverName, Parameters: map[string]string{"iops": "9"},
	}, metav1.CreateOptions{})
	s.must(err, "create attributes class")
	volume := s.awaitBound("claim")
	if got := s.inStorage(volume).Mutable["iops"]; got != "9" || *volume.Spec.VolumeAttributesClassName != s.namespace {
		t.Errorf("iops are %q, the volume's class is %v", got, volume.Spec.VolumeAttributesClassName)
	}
}

func TestADataSourceOfSomeoneElseIsLeftToHim(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	group := "hello.example.com"
	claim := s.createClaim("claim", deleteClass, func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: &group, Kind: "Hello", Name: "hello"}
	})
	if message := s.awaitEvent(claim, "Provisioning"); !strings.Contains(message, group) {
		t.Errorf("the event does not name the source: %s", message)
	}
	s.passQueues()
	if failures := s.events(claim, "ProvisioningFailed"); len(failures) > 0 {
		t.Errorf("the claim is not left alone: %v", failures)
	}
	s.awaitClaim("claim", "waits", func(c *v1.PersistentVolumeClaim) bool {
		return c.Status.Phase == v1.ClaimPending && !finalizer.Has(c.Finalizers, finalizer.Provisioning)
	})
}

func TestWhateverADriverSaysOfAVolumeTheClaimIsServedInTheEnd(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s = s.beside(s.namespace+".liar", "--with=topology --faults=testdata/lies.yaml", "--retry-interval-start=50ms")
	s.createClass()
	s.ownNode("node", "csimock/zone=local")
	seen := s.watchEvents("ProvisioningFailed")
	claim := s.createClaim("claim", s.namespace)
	for _, flaw := range []string{"no volume handle", "1000 bytes", "capacity 1 less", "not reachable"} {
		seen.await(s, claim.Name, flaw)
	}
	volume := s.awaitBound("claim")
	list, err := s.storage().ListVolumes(s.ctx, nil)
	s.must(err, "list volumes of the storage system")
	if len(list.GetEntries()) != 1 || !s.stored(handle(volume)) {
		t.Errorf("the storage system has %v, want %s alone", list.GetEntries(), handle(volume))
	}
}

func TestAVolumeOfAMigratedPluginIsMadeAndDeletedByItsDriver(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true})).beside("ebs.csi.aws.com", "", "")
	s.createClass(func(c *storagev1.StorageClass) {
		c.Provisioner, c.Parameters = "kubernetes.io/aws-ebs", map[string]string{"type": "gp3", "fsType": "xfs"}
	})
	s.createClaim("claim", s.namespace)
	volume := s.awaitBound("claim")
	if volume.Spec.AWSElasticBlockStore == nil || volume.Spec.AWSElasticBlockStore.FSType != "xfs" || volume.Annotations[storage.AnnDynamicallyProvisioned] != "kubernetes.io/aws-ebs" {
		t.Fatalf("the volume is %+v, annotated %v", volume.Spec.PersistentVolumeSource, volume.Annotations)
	}
	id := volume.Spec.AWSElasticBlockStore.VolumeID
	if !s.stored(id) {
		t.Errorf("the storage system does not have %s", id)
	}
	s.awaitVolume(volume.Name, "is protected", func(v *v1.PersistentVolume) bool {
		return finalizer.Has(v.Finalizers, finalizer.External) && v.Annotations[storage.AnnMigratedTo] == s.driver.DriverName
	})
	s.deleteVolume(volume.Name)
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	if s.stored(id) {
		t.Errorf("volume %s leaked", id)
	}
	if calls := s.calls("DeleteVolume", id); calls != 1 {
		t.Errorf("DeleteVolume was called %d times, want once", calls)
	}
}

// An administrator who migrates by hand writes a CSI volume for a disk that an
// in-tree one still names.
func TestADiskThatAnInTreeVolumeNamesTooIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true})).beside("cinder.csi.openstack.org", "", "")
	s.createClass(func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/cinder" })
	s.createClaim("in-tree", s.namespace)
	inTree := s.awaitBound("in-tree")
	id := inTree.Spec.Cinder.VolumeID
	s.createVolume(id, v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "by-hand" })
	s.createClaim("by-hand", "by-hand")
	byHand := s.awaitBound("by-hand")
	for _, name := range []string{"by-hand", "in-tree"} {
		s.deleteClaim(name)
	}
	for volume, other := range map[*v1.PersistentVolume]string{byHand: inTree.Name, inTree: byHand.Name} {
		if message := s.awaitEvent(volume, "VolumeHandleShared"); !strings.Contains(message, other) {
			t.Errorf("the event does not name %s: %s", other, message)
		}
	}
	if !s.stored(id) || s.calls("DeleteVolume", id) != 0 {
		t.Errorf("the data of %s is gone: the driver was called %d times", id, s.calls("DeleteVolume", id))
	}
}

// eventLog collects events from when it was started on.
type eventLog struct {
	events <-chan *v1.Event
}

// watchEvents collects the events of the namespace with the reason, every
// repetition of them.
func (s *scene) watchEvents(reason string) *eventLog {
	s.t.Helper()
	events := make(chan *v1.Event, 100)
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "events", s.namespace, reasonIs(reason))
	informer := cache.NewSharedInformer(source, &v1.Event{}, 0)
	note := func(object any) {
		if event, ok := object.(*v1.Event); ok {
			events <- event
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }})
	s.must(err, "watch events")
	go informer.RunWithContext(s.ctx)
	if !cache.WaitForCacheSync(s.ctx.Done(), informer.HasSynced) {
		s.t.Fatal("watching events failed")
	}
	return &eventLog{events: events}
}

// await waits for an event about the object whose message has the text.
func (l *eventLog) await(s *scene, object, text string) {
	s.t.Helper()
	for {
		select {
		case event := <-l.events:
			if event.InvolvedObject.Name == object && strings.Contains(event.Message, text) {
				return
			}
		case <-s.ctx.Done():
			s.t.Fatalf("no event about %s says %q", object, text)
		}
	}
}
