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
}

// engine is a controller that runs a provisioner.
type engine string

const (
	// v10Default is v10 with the options that it has by default: without the finalizer.
	v10Default engine = "v10, default options"
	// v10 is v10 with AddFinalizer.
	v10 engine = "v10, AddFinalizer"
)

// engines are all engines that the cases are played on.
var engines = []engine{v10Default, v10}

// forgets reports whether the engine knows nothing after a restart of a volume whose
// claim is gone.
func (e engine) forgets() bool { return e == v10 || e == v10Default }

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
	hooked := &hookedProvisioner{Provisioner: hostpath.Provisioner{BaseDir: how.BaseDir}, hooks: how.Hooks}
	switch how.Engine {
	case v10, v10Default:
		controller.NewProvisionController(klog.Background(), client, how.Name, hooked,
			controller.LeaderElection(false), controller.AddFinalizer(how.Engine == v10),
			controller.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[any](retryFirst, retryMost))).Run(ctx)
		return nil
	}
	return fmt.Errorf("unknown engine %q", how.Engine)
}

// ending is how a call of the provisioner ends after its work in the storage system is
// done.
type ending string

const (
	succeeds   ending = ""
	answerLost ending = "answer lost"
)

// hookedProvisioner is the provisioner of the example, whose calls end as the test says.
type hookedProvisioner struct {
	hostpath.Provisioner
	hooks string
}

// Provision implements [controller.Provisioner].
func (p *hookedProvisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	volume, state, err := p.Provisioner.Provision(ctx, options)
	if err != nil {
		return nil, state, err
	}
	switch end, err := p.ask(ctx, "Provision", options.PVName); {
	case err != nil:
		return nil, controller.ProvisioningInBackground, err
	case end == answerLost:
		return nil, controller.ProvisioningInBackground, errors.New("the storage system did not answer in time")
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
	if err := p.Provisioner.Delete(ctx, volume); err != nil {
		return err
	}
	_, err := p.ask(ctx, "Delete", volume.Name)
	return err
}

// ask tells the test about the call and returns how the call ends.
func (p *hookedProvisioner) ask(ctx context.Context, method, volume string) (ending, error) {
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
	return ending(answer), err
}
