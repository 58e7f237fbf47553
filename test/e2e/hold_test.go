package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// These tests run the claim side of the provisioner in this process, on caches that
// they fill by hand, against the real API server and a storage system of their own.

// storage is a storage system of which a test says what goes wrong.
type storage struct {
	name     string
	topology bool
	// next are the faults of the next calls.
	next []fault
	// handles are the volumes by name; made counts them.
	handles map[string]string
	made    int
	// known are handles that PersistentVolumes have.
	known []string
	// asked are the names asked for, deleted the handles deleted; undeletable fails that.
	asked, deleted []string
	undeletable    error
	// handle overrides what the driver returns.
	handle string
}

// fault fails a call, before or after its work.
type fault struct {
	code  codes.Code
	after bool
}

func (d *storage) Name() string       { return d.name }
func (d *storage) HasTopology() bool  { return d.topology }
func (d *storage) TellsWriters() bool { return false }
func (d *storage) Snapshots() bool    { return false }
func (d *storage) Clones() bool       { return false }
func (d *storage) Modifies() bool     { return false }

func (d *storage) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	d.asked = append(d.asked, request.GetName())
	var struck fault
	if len(d.next) > 0 {
		struck, d.next = d.next[0], d.next[1:]
	}
	if struck.code != codes.OK && !struck.after {
		return nil, status.Error(struck.code, "scripted fault")
	}
	if d.handles[request.GetName()] == "" {
		d.made++
		d.handles[request.GetName()] = fmt.Sprintf("%s-%d", request.GetName(), d.made)
	}
	handle := d.handles[request.GetName()]
	if d.handle != "" {
		handle = d.handle
	}
	if struck.code != codes.OK {
		return nil, status.Error(struck.code, "scripted fault")
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: handle, CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}}, nil
}

func (d *storage) Known(handle string) bool { return slices.Contains(d.known, handle) }

func (d *storage) Discard(_ context.Context, volume *v1.PersistentVolume) error {
	if d.undeletable != nil {
		return d.undeletable
	}
	d.deleted = append(d.deleted, handle(volume))
	for name, stored := range d.handles {
		if stored == handle(volume) {
			delete(d.handles, name)
		}
	}
	return nil
}

// maker is the claim side on caches that are filled by hand.
type maker struct {
	*scene
	storage *storage
	factory informers.SharedInformerFactory
	*provisioning.Controller
	events *record.FakeRecorder
	class  string
}

// newMaker makes the claim side for a driver of the test's own, and a class of it.
func (s *scene) newMaker(mode storagev1.VolumeBindingMode) *maker {
	s.t.Helper()
	m := &maker{scene: s, storage: &storage{name: s.namespace + ".example.com", handles: map[string]string{}}, class: s.namespace}
	class := newClass(m.class, m.storage.name, v1.PersistentVolumeReclaimDelete, mode)
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
	m.restart()
	return m
}

// restart is a new process: it knows what the API server says.
func (m *maker) restart() {
	m.t.Helper()
	m.factory = informers.NewSharedInformerFactory(m.client, 0)
	m.events = record.NewFakeRecorder(1000)
	core := m.factory.Core().V1()
	var err error
	m.Controller, err = provisioning.New(provisioning.Config{
		Client: m.client, Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(),
		Classes:     m.factory.Storage().V1().StorageClasses().Informer(),
		Provisioner: &provisioning.Provisioner{Driver: m.storage, Inputs: provisioning.NewInputs(provisioning.InputsConfig{Client: m.client, Driver: m.storage}), Honor: true},
		Deletion:    m.storage,
		Serves:      func(name string) bool { return name == m.storage.name },
		Node: func(ctx context.Context, name string) (*v1.Node, error) {
			return m.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		},
		VolumeName: func(claim *v1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) },
		Turns:      &controller.Turns{}, Reporter: controller.NewReporter(m.events), Metrics: librarymetrics.New("maker"),
		Backoff: controller.Backoff{First: time.Second, Most: time.Second}, Holds: true,
	})
	m.must(err, "make controller")
	class, err := m.client.StorageV1().StorageClasses().Get(m.ctx, m.class, metav1.GetOptions{})
	m.must(err, "read class")
	fill(m.scene, m.factory.Storage().V1().StorageClasses().Informer(), class)
}

// requested makes a claim and waits until the binder has asked for its volume.
func (m *maker) requested(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	m.t.Helper()
	m.createClaim("claim", m.class, change...)
	return m.awaitClaim("claim", "is to be served", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[binding.StorageProvisioner] != "" && c.Status.Phase == v1.ClaimPending
	})
}

// see brings the claim into the cache as it is now.
func (m *maker) see(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	m.t.Helper()
	now, err := m.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(m.ctx, claim.Name, metav1.GetOptions{})
	m.must(err, "read claim")
	m.cache(now)
	return now
}

func (m *maker) cache(claim *v1.PersistentVolumeClaim) {
	m.t.Helper()
	fill(m.scene, m.factory.Core().V1().PersistentVolumeClaims().Informer(), claim)
}

func (m *maker) reconcile(claim *v1.PersistentVolumeClaim) error {
	return m.Reconcile(m.ctx, claim.Namespace+"/"+claim.Name+"/"+string(claim.UID))
}

// converge reconciles, and again if somebody else has written to the claim meanwhile.
func (m *maker) converge(claim *v1.PersistentVolumeClaim) {
	m.t.Helper()
	for {
		err := m.reconcile(claim)
		if err == nil {
			return
		}
		if !patch.IsStale(err) {
			m.t.Fatalf("reconcile: %v", err)
		}
		claim = m.see(claim)
	}
}

// volumeOf returns the volume of the claim's name, nil if there is none.
func (m *maker) volumeOf(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	m.t.Helper()
	list, err := m.client.CoreV1().PersistentVolumes().List(m.ctx, metav1.ListOptions{FieldSelector: "metadata.name=pvc-" + string(claim.UID)})
	m.must(err, "list volumes")
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func (m *maker) event(reason string) string {
	m.t.Helper()
	for {
		select {
		case event := <-m.events.Events:
			if strings.Contains(event, " "+reason+" ") {
				return event
			}
		default:
			m.t.Errorf("no event %s", reason)
			return ""
		}
	}
}

func (m *maker) expect(what string, got, want any) {
	m.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func held(claim *v1.PersistentVolumeClaim) bool {
	return finalizer.Has(claim.Finalizers, finalizer.Provisioning)
}

// open makes a claim whose volume was made though the answer said nothing, and that
// is being deleted.
func (m *maker) open() *v1.PersistentVolumeClaim {
	m.t.Helper()
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	if err := m.reconcile(claim); err == nil {
		m.t.Error("a timeout is no error")
	}
	m.deleteClaim(claim.Name)
	return m.see(claim)
}

func TestAClaimIsHeldUntilItsVolumeIsRecordedAndBound(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.Unavailable, false}}
	if err := m.reconcile(claim); err == nil {
		t.Error("an unavailable driver is no error")
	}
	if claim = m.see(claim); !held(claim) {
		t.Errorf("the claim is not held: %v", claim.Finalizers)
	}
	m.converge(claim)
	volume := m.awaitBound(claim.Name)
	m.expect("mark", volume.Annotations[binding.HoldsClaims], "true")
	if claim = m.see(claim); held(claim) {
		t.Errorf("a bound claim is held: %v", claim.Finalizers)
	}
	m.expect("asked", len(m.storage.asked), 2)
}

func TestAVolumeWhoseAnswerWasLostIsDeletedWithItsClaim(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.expect("volumes", len(m.storage.handles), 1)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("volumes", len(m.storage.handles), 0)
}

func TestAVolumeWhoseAnswerWasLostIsDeletedAfterARestart(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.restart()
	m.cache(claim)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("volumes", len(m.storage.handles), 0)
	m.expect("deleted", len(m.storage.deleted), 1)
}

func TestAnAnswerThatWasLostIsWaitedForThoughTheClaimWasLetGoByForce(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.must(m.letGoByForce(claim), "let go")
	m.awaitClaimGone(claim.Name)
	m.must(m.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Delete(claim), "empty cache")
	m.converge(claim)
	m.expect("volumes", len(m.storage.handles), 0)
}

// letGoByForce does what the command in the events does.
func (m *maker) letGoByForce(claim *v1.PersistentVolumeClaim) error {
	body := []byte(finalizer.ReleasePatch(finalizer.Provisioning))
	_, err := m.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(m.ctx, claim.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	return err
}

func TestADriverThatNeverComesBackIsNamedTogetherWithTheCommandThatLetsGo(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.next = []fault{{codes.Unavailable, false}}
	if err := m.reconcile(claim); err == nil {
		t.Error("an unavailable driver is no error")
	}
	message := m.event("ProvisioningUnresolved")
	command := finalizer.ReleaseCommand(claim, finalizer.Provisioning)
	if !strings.Contains(message, m.storage.name) || !strings.Contains(message, command) {
		t.Errorf("the event names neither %s nor the command %s: %s", m.storage.name, command, message)
	}
	if claim = m.see(claim); !held(claim) {
		t.Error("the claim was let go while the outcome is unknown")
	}
	if message := m.awaitEvent(claim, "ClaimHeld"); !strings.Contains(message, command) {
		t.Errorf("the event of the pv-controller lacks the command %s: %s", command, message)
	}
	m.must(m.letGoByForce(claim), "run the command of the event")
	m.awaitClaimGone(claim.Name)
}

func TestAVolumeMadeForNothingThatCannotBeDeletedIsNamedAndTriedAgain(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.undeletable = status.Error(codes.Internal, "cannot")
	if err := m.reconcile(claim); err == nil {
		t.Error("a failed deletion is no error")
	}
	if message := m.event("ProvisioningCleanupFailed"); !strings.Contains(message, finalizer.ReleaseCommand(claim, finalizer.Provisioning)) {
		t.Errorf("the event lacks the command: %s", message)
	}
	m.storage.undeletable = nil
	asked := len(m.storage.asked)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("asked again for a volume whose handle is known", len(m.storage.asked)-asked, 0)
	m.expect("volumes", len(m.storage.handles), 0)
}

func TestAClaimThatIsGoneOrBoundThoughTheCacheIsLateIsNotServed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *maker, claim *v1.PersistentVolumeClaim){
		"gone": func(m *maker, claim *v1.PersistentVolumeClaim) {
			m.deleteClaim(claim.Name)
			m.awaitClaimGone(claim.Name)
		},
		"of another UID": func(m *maker, claim *v1.PersistentVolumeClaim) {
			m.deleteClaim(claim.Name)
			m.awaitClaimGone(claim.Name)
			m.requested()
		},
		"bound": func(m *maker, claim *v1.PersistentVolumeClaim) {
			m.createVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
				v.Spec.StorageClassName, v.Spec.CSI.Driver = m.class, m.storage.name
				v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
			})
			m.awaitBound(claim.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
			late := m.see(m.requested())
			change(m, late)
			_ = m.reconcile(late) // an error asks for another look
			m.expect("asked", len(m.storage.asked), 0)
		})
	}
}

func TestAnImpostorUnderTheVolumesNameCostsNeitherDataNorALeak(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	impostor := m.createVolume("impostor", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.StorageClassName = "pvc-"+string(claim.UID), m.storage.name, "none"
	})
	if err := m.reconcile(claim); err == nil || !strings.Contains(err.Error(), impostor.Name) {
		t.Errorf("Reconcile = %v, want an error that names the volume", err)
	}
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, impostor.Name) {
		t.Errorf("the event does not name the volume: %s", message)
	}
	m.expect("volumes", len(m.storage.handles), 0)
	m.expect("deleted", fmt.Sprint(m.storage.deleted), fmt.Sprintf("[%s-1]", impostor.Name))
	asked := len(m.storage.asked)
	if err := m.reconcile(m.see(claim)); err == nil {
		t.Error("an impostor is no error")
	}
	m.expect("asked again beside the impostor", len(m.storage.asked)-asked, 0)
	m.deleteVolume(impostor.Name)
	m.awaitVolumeGone(impostor.Name)
	m.converge(m.see(claim))
	m.expect("handle", handle(m.awaitBound(claim.Name)), m.storage.handles["pvc-"+string(claim.UID)])
}

func TestAVolumeThatIsRecordedAlreadyIsNotRecordedTwiceNorDeleted(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.converge(claim)
	m.awaitBound(claim.Name)
	for name, cached := range map[string]*v1.PersistentVolumeClaim{"late": claim, "of now": m.see(claim)} {
		m.restart() // its cache of volumes is empty
		m.cache(cached)
		_ = m.reconcile(cached)
		m.expect("deleted with a cache "+name, len(m.storage.deleted), 0)
	}
	if m.volumeOf(claim) == nil {
		t.Error("the volume is gone")
	}
}

func TestAHeldClaimThatIsBoundToTheVolumeOfAnotherProcessCostsNoData(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.converge(claim)
	m.awaitBound(claim.Name)
	bound := m.see(claim)
	body, err := finalizer.Edit(patch.For(bound), bound, finalizer.Change{Add: []finalizer.Name{finalizer.Provisioning}}).Bytes()
	m.must(err, "encode")
	again, err := m.client.CoreV1().PersistentVolumeClaims(bound.Namespace).Patch(m.ctx, bound.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	m.must(err, "hold the claim as upstream's binder leaves it")
	m.restart() // its cache of volumes is empty, so that the volume seems to be forgotten
	m.cache(again)
	m.converge(again)
	m.expect("deleted", len(m.storage.deleted), 0)
	if now := m.see(claim); held(now) {
		t.Errorf("the claim is still held: %v", now.Finalizers)
	}
}

func TestAHandleOfAnotherVolumeIsNeitherRecordedNorDeleted(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.handle, m.storage.known = "of-another", []string{"of-another"}
	if err := m.reconcile(claim); err == nil || !strings.Contains(err.Error(), "of-another") {
		t.Errorf("Reconcile = %v, want an error that names the handle", err)
	}
	m.expect("deleted", len(m.storage.deleted), 0)
	if m.volumeOf(claim) != nil {
		t.Error("the volume of another claim was recorded")
	}
}

func TestAVolumeThatCannotBeUsedIsDeletedAndTheUserToldWhy(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.handle = strings.Repeat("x", 600)
	if err := m.reconcile(claim); err == nil {
		t.Error("a handle that is too long is no error")
	}
	m.expect("deleted", fmt.Sprint(m.storage.deleted), fmt.Sprintf("[%s]", m.storage.handle))
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, "600 bytes") {
		t.Errorf("the event does not say why: %s", message)
	}
}

// placed chooses the node for a claim as the scheduler does.
func placed(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{binding.SelectedNode: node} }
}

func TestANodeThatVanishedIsGivenBackOnceTheVolumeMadeForItIsDeleted(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingWaitForFirstConsumer)
	node, err := m.client.CoreV1().Nodes().Create(m.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}, metav1.CreateOptions{})
	m.must(err, "create node")
	claim := m.see(m.requested(placed(node.Name)))
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	if err := m.reconcile(claim); err == nil {
		t.Error("a timeout is no error")
	}
	m.must(m.client.CoreV1().Nodes().Delete(m.ctx, node.Name, metav1.DeleteOptions{}), "delete node")
	m.converge(m.see(claim))
	m.expect("volumes", len(m.storage.handles), 0)
	now := m.see(claim)
	if _, chosen := now.Annotations[binding.SelectedNode]; chosen || !held(now) {
		t.Errorf("want a held claim without a node, got %v, %v", now.Annotations, now.Finalizers)
	}
	m.deleteClaim(claim.Name)
	m.converge(m.see(claim))
	m.awaitClaimGone(claim.Name)
}

func TestANodeWithoutRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingWaitForFirstConsumer)
	claim := m.see(m.requested(placed("no-such-node")))
	m.converge(claim)
	if node, chosen := m.see(claim).Annotations[binding.SelectedNode]; chosen {
		t.Errorf("the node %s is still chosen", node)
	}
	m.expect("asked", len(m.storage.asked), 0)
}

func TestARequestThatCannotBeBuiltHoldsNothing(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested(func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}))
	if err := m.reconcile(claim); err == nil {
		t.Error("a selector is no error")
	}
	if now := m.see(claim); held(now) {
		t.Errorf("the claim is held: %v", now.Finalizers)
	}
	m.expect("asked", len(m.storage.asked), 0)
}

// claimWrites counts the writes of a program to a claim of the test.
func (s *scene) claimWrites(account, claim string) int {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	count := 0
	for _, event := range events {
		if event.User == "system:serviceaccount:"+deploy.Namespace+":"+account && event.Writes() &&
			event.Resource == "persistentvolumeclaims" && event.Namespace == s.namespace && event.Name == claim {
			count++
		}
	}
	return count
}

func TestTheHoldRidesOnWritesThatOurControllerMakesAnyway(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createClaim("first", deleteClass) // its volume tells what the provisioner is
	s.awaitBound("first")
	s.createClaim("second", deleteClass)
	s.awaitBound("second")
	if writes := s.claimWrites("provisioner", "second"); writes != 0 {
		t.Errorf("the provisioner wrote to the claim %d times, want none", writes)
	}
	if writes := s.claimWrites("pv-controller", "second"); writes > 4 {
		t.Errorf("the pv-controller wrote to the claim %d times, want at most 4: phase Pending, request, binding, phase Bound", writes)
	}
	s.awaitClaim("second", "is not held", func(c *v1.PersistentVolumeClaim) bool { return !held(c) })
}

func TestBesideUpstreamsLoopsTheProvisionerHoldsAndLetsGoByItself(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, upstreamLoops: true}))
	s.createClaim("claim", deleteClass)
	s.awaitBound("claim")
	s.awaitClaim("claim", "is not held", func(c *v1.PersistentVolumeClaim) bool { return !held(c) })
	if writes := s.claimWrites("provisioner", "claim"); writes != 2 {
		t.Errorf("the provisioner wrote to the claim %d times, want twice: hold and let go", writes)
	}
}
