package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/examples/hostpath-provisioner/hostpath"
	"github.com/exeunt-io/exeunt/pkg/provisioner"
)

// settingsVariable is the environment variable that makes a process of this binary a
// provisioner.
const settingsVariable = "EXEUNT_LIBRARY_SETTINGS"

// retryFirst and retryMost bound the time between two tries.
const (
	retryFirst = 20 * time.Millisecond
	retryMost  = 200 * time.Millisecond
)

// settings are what a process of the provisioner is started with.
type settings struct {
	// Engine is the controller that runs the provisioner.
	Engine engine
	// Name is that of the provisioner, BaseDir has its volumes.
	Name, BaseDir string
	Kubeconfig    string
	// Hooks is the URL of the test that decides how calls end.
	Hooks string
	// Elected has exeunt lead by a lease, NonIdempotent never repeat a call after a
	// restart, and Guarded ask the test which claims and volumes to serve.
	Elected, NonIdempotent, Guarded bool
	// Node is that of a process which serves only claims for this node.
	Node string
}

// engine is a controller that runs a provisioner.
type engine string

const (
	// v10Default is v10 with the options that it has by default: without the finalizer.
	v10Default engine = "v10, default options"
	// v10 is v10 with AddFinalizer.
	v10 engine = "v10, AddFinalizer"
	// exeunt is pkg/provisioner with the options that it has by default.
	exeunt engine = "exeunt"
)

// engines are all tested engines.
var engines = []engine{v10Default, v10, exeunt}

// leaksOnRestart reports whether the engine, after a restart, leaks an unrecorded volume whose
// claim is gone.
func (e engine) leaksOnRestart() bool { return e == v10 || e == v10Default }

// provision is the provisioner's process.
func provision(text string) error {
	var how settings
	if err := json.Unmarshal([]byte(text), &how); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", how.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	plain := hookedProvisioner{hostpath.Provisioner{BaseDir: how.BaseDir}, how.Hooks}
	var hooked controller.Provisioner = &plain
	switch {
	case how.Guarded:
		hooked = &guardedProvisioner{plain}
	case how.Node != "":
		hooked = &nodeProvisioner{plain, how.Node}
	}
	switch how.Engine {
	case v10, v10Default:
		controller.NewProvisionController(klog.Background(), client, how.Name, hooked,
			controller.LeaderElection(false), controller.AddFinalizer(how.Engine == v10),
			controller.FailedDeleteThreshold(0), // as in csi-provisioner; a slow test must not use up 15 tries
			controller.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[any](retryFirst, retryMost))).Run(ctx)
		return nil
	case exeunt:
		return provisioner.NewProvisionController(klog.Background(), client, how.Name, hooked,
			provisioner.LeaderElection(how.Elected), provisioner.Idempotent(!how.NonIdempotent), provisioner.Node(how.Node),
			provisioner.RetryInterval(retryFirst, retryMost)).Run(ctx)
	}
	return fmt.Errorf("unknown engine %q", how.Engine)
}

// result is the result of a call of the provisioner.
type result string

const (
	succeeds result = ""
	// answerLost: the volume was created, and the call returns an error.
	answerLost result = "answer lost"
	// unfitNode: the volume cannot be created for the selected node.
	unfitNode result = "unfit node"
	// incomplete: the returned PersistentVolume has no capacity.
	incomplete result = "incomplete"
	fails      result = "fails"
	// declined: the guard does not allow the call now.
	declined result = "declined"
)

// Calls that the provisioner reports to the test.
const (
	// provisioned: the directory exists, and Provision has not returned.
	provisioned = "Provision"
	// deleting: Delete was called, and the directory exists; deleted: it does not.
	deleting        = "Delete, before"
	deleted         = "Delete"
	shouldProvision = "ShouldProvision"
	shouldDelete    = "ShouldDelete"
)

// hookedProvisioner is the provisioner of the example, whose calls end as the test says.
type hookedProvisioner struct {
	hostpath.Provisioner
	hooks string
}

var _ controller.Provisioner = (*hookedProvisioner)(nil)

// Provision implements [controller.Provisioner].
func (p *hookedProvisioner) Provision(ctx context.Context,
	options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	volume, state, err := p.Provisioner.Provision(ctx, options)
	if err != nil {
		return nil, state, err
	}
	switch end, err := p.ask(ctx, provisioned, options.PVName); {
	case err != nil:
		return nil, controller.ProvisioningInBackground, err
	case end == answerLost:
		return nil, controller.ProvisioningInBackground, errors.New("the storage system did not answer in time")
	case end == unfitNode:
		if err := p.Provisioner.Delete(ctx, volume); err != nil {
			return nil, controller.ProvisioningInBackground, err
		}
		return nil, controller.ProvisioningReschedule, errors.New("the node is full")
	case end == incomplete:
		volume.Spec.Capacity = nil
	}
	return volume, state, nil
}

// Delete implements [controller.Provisioner]. Static volumes name their directory as the
// handle of a CSI source: those are the static volumes that v10 reclaims.
func (p *hookedProvisioner) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	if source := volume.Spec.CSI; source != nil {
		volume = volume.DeepCopy()
		volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: source.VolumeHandle}}
	}
	switch end, err := p.ask(ctx, deleting, volume.Name); {
	case err != nil:
		return err
	case end == fails:
		return errors.New("the directory is busy")
	}
	if err := p.Provisioner.Delete(ctx, volume); err != nil {
		return err
	}
	_, err := p.ask(ctx, deleted, volume.Name)
	return err
}

// guardedProvisioner is a hookedProvisioner with a Qualifier and a DeletionGuard.
type guardedProvisioner struct{ hookedProvisioner }

// ShouldProvision implements [controller.Qualifier].
func (p *guardedProvisioner) ShouldProvision(ctx context.Context, claim *v1.PersistentVolumeClaim) bool {
	end, err := p.ask(ctx, shouldProvision, "pvc-"+string(claim.UID))
	return err == nil && end == succeeds
}

// ShouldDelete implements [controller.DeletionGuard].
func (p *guardedProvisioner) ShouldDelete(ctx context.Context, volume *v1.PersistentVolume) bool {
	end, err := p.ask(ctx, shouldDelete, volume.Name)
	return err == nil && end == succeeds
}

// ask reports the call to the test, and returns the result that the test wants.
func (p *hookedProvisioner) ask(ctx context.Context, method, volume string) (result, error) {
	question := p.hooks + "?" + url.Values{"method": {method}, "volume": {volume}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, question, bytes.NewReader(nil))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return result(answer), err
}
