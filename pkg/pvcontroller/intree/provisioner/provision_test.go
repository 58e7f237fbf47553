package provisioner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// failing is the host-path plugin, which cannot create volumes.
type failing struct{ *intree.HostPath }

func (failing) Create(context.Context, *v1.PersistentVolume) error {
	return errors.New("no space left")
}

func withMountOptions(class *storagev1.StorageClass) { class.MountOptions = []string{"noatime"} }

func waitingForConsumer(class *storagev1.StorageClass) {
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
}

// The scheduler selects a node again at once, so that both would change the claim for ever.
func TestRefusedClaimKeepsItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		class  *storagev1.StorageClass
		change func(*v1.PersistentVolumeClaim)
		off    bool // provisioning
		keeps  bool
	}{
		"mount options": {class: hostPathClass(waitingForConsumer, withMountOptions), keeps: true},
		"plugin is off": {class: hostPathClass(waitingForConsumer), off: true, keeps: true},
		"block volume": {class: hostPathClass(waitingForConsumer),
			change: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock) }},
		"another source": {class: hostPathClass(waitingForConsumer), change: func(c *v1.PersistentVolumeClaim) {
			c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "Any", Name: "any"}
		}, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := newClaim(func(c *v1.PersistentVolumeClaim) { c.Annotations[storage.AnnSelectedNode] = "node" })
			if tc.change != nil {
				tc.change(claim)
			}
			s := newFixture(t, &intree.HostPath{Root: t.TempDir(), Provisions: !tc.off}, tc.class, claim)
			s.reconcile()
			if s.provision() == nil {
				t.Fatal("the claim was not refused")
			}
			now, err := s.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
			s.must(err)
			if _, has := now.Annotations[storage.AnnSelectedNode]; has != tc.keeps {
				t.Errorf("annotations %v", now.Annotations)
			}
			if failed := slices.IndexFunc(s.events.events,
				func(e string) bool { return strings.HasPrefix(e, "Warning ProvisioningFailed: ") }); failed < 0 {
				t.Errorf("events %q", s.events.events)
			}
		})
	}
}

func TestProvisioningByPluginIsReportedOnClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		class    *storagev1.StorageClass
		refused  bool // the API server refuses the PersistentVolume
		fails    bool // the plugin fails
		want     string
		recorded bool // there is a PersistentVolume afterwards
	}{
		"created volume":            {class: hostPathClass(), want: "Normal ProvisioningSucceeded: ", recorded: true},
		"class that plugin refuses": {class: hostPathClass(withMountOptions), want: "Warning ProvisioningFailed: "},
		"refusal by API server":     {class: hostPathClass(), refused: true, want: "Warning ProvisioningFailed: "},
		"failure of plugin":         {class: hostPathClass(), fails: true, want: "Warning ProvisioningFailed: ", recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			var plugin intree.Plugin = &intree.HostPath{Root: root, Provisions: true}
			if tc.fails {
				plugin = failing{plugin.(*intree.HostPath)}
			}
			s := newFixture(t, plugin, tc.class, newClaim())
			if tc.refused {
				s.client.PrependReactor("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(v1.Resource("persistentvolumes"), "v", errors.New("by policy"))
				})
			}
			s.reconcile()
			succeeds := strings.HasPrefix(tc.want, "Normal")
			if err := s.provision(); (err == nil) != succeeds {
				t.Errorf("Reconcile returns %v", err)
			}
			if len(s.events.events) != 1 || !strings.HasPrefix(s.events.events[0], tc.want) {
				t.Errorf("events %q, want one that begins with %q", s.events.events, tc.want)
			}
			_, err := s.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-claim", metav1.GetOptions{})
			if recorded := err == nil; recorded != tc.recorded {
				t.Errorf("the volume is recorded: %v, want %v (%v)", recorded, tc.recorded, err)
			}
			if _, err := os.Stat(filepath.Join(root, "hostpath_pv", "pvc-claim")); (err == nil) != succeeds {
				t.Errorf("read the directory: %v", err)
			}
		})
	}
}

// crashing is the host-path plugin; the process ends before or after its work.
type crashing struct {
	*intree.HostPath
	before, after bool
}

var errCrash = errors.New("the process ends")

func (p *crashing) Create(ctx context.Context, volume *v1.PersistentVolume) error {
	if p.before {
		return errCrash
	}
	err := p.HostPath.Create(ctx, volume)
	if p.after {
		return errCrash
	}
	return err
}

// After a crash at any point a restart serves the claim, or leaves nothing behind if
// the claim was deleted meanwhile.
func TestCrashWhileProvisioningLeaksNoDirectory(t *testing.T) {
	for name, crash := range map[string]crashing{"recorded only": {before: true}, "created": {after: true}} {
		for _, gone := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				root, crash := t.TempDir(), crash
				crash.HostPath = &intree.HostPath{Root: root, Provisions: true}
				s := newFixture(t, &crash, hostPathClass(), newClaim())
				s.reconcile()
				if err := s.provision(); !errors.Is(err, errCrash) {
					t.Fatalf("Reconcile returns %v", err)
				}
				if claim := s.reconcile(); claim.Spec.VolumeName != "" {
					t.Errorf("the claim is bound to the unfinished volume %s", claim.Spec.VolumeName)
				}
				crash.before, crash.after = false, false
				if gone {
					s.expectReclaimed(root)
					return
				}
				s.must(s.provision())
				for range 2 { // the first updates the phase in the cache
					s.reconcile()
				}
				if claim := s.reconcile(); claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName != "pvc-claim" {
					t.Errorf("the claim is %s, bound to %q", claim.Status.Phase, claim.Spec.VolumeName)
				}
				if _, err := os.Stat(filepath.Join(root, "hostpath_pv", "pvc-claim")); err != nil {
					t.Errorf("the directory of the bound volume: %v", err)
				}
			})
		}
	}
}

// expectReclaimed deletes the claim and wants the volume and its directory deleted.
func (s *fixture) expectReclaimed(root string) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.client.CoreV1().PersistentVolumeClaims("ns").Delete(ctx, "claim", metav1.DeleteOptions{}))
	s.must(s.caches.Claims.GetStore().Delete(newClaim()))
	for _, reconcile := range []func(context.Context, string) error{s.Volumes.Reconcile, s.Reclaimer.Reconcile} {
		s.must(reconcile(ctx, "pvc-claim"))
		if now, err := s.client.CoreV1().PersistentVolumes().Get(ctx, "pvc-claim", metav1.GetOptions{}); err == nil {
			s.must(s.caches.Volumes.GetStore().Update(now))
		}
	}
	if left, err := filepath.Glob(filepath.Join(root, "*", "*")); err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v (%v)", left, err)
	}
	list, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil || slices.ContainsFunc(list.Items,
		func(v v1.PersistentVolume) bool { return v.DeletionTimestamp == nil }) {
		s.t.Errorf("volumes %v (%v)", list.Items, err)
	}
}

func TestPluginVolumeThatDoesNotFitIsReportedOnce(t *testing.T) {
	gold := "gold" // a VolumeAttributesClass, which the plugin does not know
	s := newFixture(t, &intree.HostPath{Root: t.TempDir(), Provisions: true}, hostPathClass(),
		newClaim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }))
	for range 3 {
		s.reconcile()
		s.must(s.provision())
	}
	if now := s.reconcile(); now.Spec.VolumeName != "" || s.caches.Volume("pvc-claim").Status.Phase != v1.VolumePending {
		t.Errorf("the claim is bound to %q, the volume is %s", now.Spec.VolumeName, s.caches.Volume("pvc-claim").Status.Phase)
	}
	if len(s.events.events) != 1 || !strings.HasPrefix(s.events.events[0], "Normal ProvisioningSucceeded: ") {
		t.Errorf("events %q, want one success", s.events.events)
	}
}

func TestVolumeOfAnotherClaimIsNotProvisioned(t *testing.T) {
	s := newFixture(t, &intree.HostPath{Root: t.TempDir(), Provisions: true}, hostPathClass(), newClaim())
	s.reconcile()
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-claim"}}
	_, err := s.client.CoreV1().PersistentVolumes().Create(t.Context(), other, metav1.CreateOptions{})
	s.must(err)
	if err := s.provision(); err == nil || !strings.Contains(err.Error(), "another volume has the name pvc-claim") {
		t.Errorf("Reconcile returns %v", err)
	}
	if len(s.events.events) != 1 || !strings.HasPrefix(s.events.events[0], "Warning ProvisioningFailed: ") {
		t.Errorf("events %q, want one failure", s.events.events)
	}
}

func TestProvisioningIsMeasuredUntilClaimIsBound(t *testing.T) {
	s := newFixture(t, &intree.HostPath{Root: t.TempDir(), Provisions: true}, hostPathClass(withMountOptions), newClaim())
	registry := metrics.NewKubeRegistry()
	s.must(s.operations.Register(registry.Register))
	s.reconcile()
	if err := s.provision(); err == nil {
		t.Fatal("provisioned with mount options, which the host-path plugin refuses")
	}
	s.must(s.caches.Classes.GetStore().Update(hostPathClass()))
	s.must(s.provision())
	for range 2 { // the first updates the volume in the cache
		s.reconcile()
	}
	want := `
		# HELP volume_operation_errors_total [ALPHA] Number of failed tries of operations
		# TYPE volume_operation_errors_total counter
		volume_operation_errors_total{operation_name="provision",plugin_name="kubernetes.io/host-path"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "volume_operation_errors_total"); err != nil {
		t.Error(err)
	}
	counted, err := testutil.GetHistogramVecFromGatherer(registry, "volume_operation_total_seconds",
		map[string]string{"plugin_name": "kubernetes.io/host-path", "operation_name": "provision"})
	if err != nil || counted.GetAggregatedSampleCount() != 1 {
		t.Errorf("%d operations were measured (%v), want one", counted.GetAggregatedSampleCount(), err)
	}
}

// The key words are those of kube-controller-manager 1.36 in the same event.
func TestInTreeProvisioningEventsHaveUpstreamKeyWords(t *testing.T) {
	block := v1.PersistentVolumeBlock
	source := func(claim *v1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	}
	working := &intree.HostPath{Root: t.TempDir(), Provisions: true}
	for name, tc := range map[string]struct {
		plugin intree.Plugin
		claim  *v1.PersistentVolumeClaim
		class  *storagev1.StorageClass
		words  []string
	}{
		"created": {working, newClaim(), hostPathClass(), []string{"Normal ProvisioningSucceeded",
			"Successfully provisioned volume pvc-claim using kubernetes.io/host-path"}},
		"disk is full": {&failing{working}, newClaim(), hostPathClass(),
			[]string{"Warning ProvisioningFailed", `Failed to provision volume with StorageClass "class"`, "no space left"}},
		"plugin disabled": {&intree.HostPath{}, newClaim(), hostPathClass(),
			[]string{"Warning ProvisioningFailed", `provisioning in volume plugin "kubernetes.io/host-path" is disabled`}},
		"block volume": {working, newClaim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), hostPathClass(),
			[]string{"Warning ProvisioningFailed", "kubernetes.io/host-path does not support block volume provisioning"}},
		"mount options": {working, newClaim(),
			hostPathClass(func(c *storagev1.StorageClass) { c.MountOptions = []string{"ro"} }),
			[]string{"Warning ProvisioningFailed", "ount options are not supported by the provisioner",
				`StorageClass "class" has mount options [ro]`}},
		"data source": {working, newClaim(source), hostPathClass(),
			[]string{"Warning ProvisioningFailed", `plugin "kubernetes.io/host-path" is not a CSI plugin`,
				"can provision a claim with a datasource"}},
	} {
		t.Run(name, func(t *testing.T) {
			metav1.SetMetaDataAnnotation(&tc.claim.ObjectMeta, storage.AnnStorageProvisioner, intree.HostPathName)
			s := newFixture(t, tc.plugin, tc.class, tc.claim)
			_ = s.provision()
			event := strings.Join(s.events.events, "; ")
			for _, words := range tc.words {
				if !strings.Contains(event, words) {
					t.Errorf("event %q lacks %q", event, words)
				}
			}
		})
	}
}

// No event comes of a claim that is not gone: what the API server does not have, or another server
// behind its address, is read again while the cache has it.
func TestClaimMissingAtTheServerIsReadAgain(t *testing.T) {
	for name, answer := range map[string]*v1.PersistentVolumeClaim{
		"gone": nil, "empty answer": {},
		"another claim of the name": newClaim(func(claim *v1.PersistentVolumeClaim) { claim.UID = "other" }),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, &intree.HostPath{Root: t.TempDir(), Provisions: true}, hostPathClass(), newClaim())
			s.client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if answer == nil {
					return true, nil, apierrors.NewNotFound(v1.Resource("persistentvolumeclaims"), "claim")
				}
				return true, answer, nil
			})
			if err := s.provision(); err == nil {
				t.Error("the claim is forgotten")
			}
		})
	}
}
