package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// Upstream's programs for snapshots, and the folder with the definitions of its resources.
const (
	snapshotController = "snapshot-controller"
	snapshotSidecar    = "csi-snapshotter"
	snapshotCRDs       = "snapshot-crds"
)

// snapshotClasses are named for what happens to the snapshot in the storage system. The verb is the driver.
const snapshotClasses = `apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: delete}
driver: %[1]s
deletionPolicy: Delete
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: retain}
driver: %[1]s
deletionPolicy: Retain
`

// StartSnapshots installs the snapshot API, and starts upstream's snapshot-controller and its sidecar beside the driver.
// There are classes of snapshots named delete and retain.
func (c *Cluster) StartSnapshots(ctx context.Context, driver *Driver) error {
	controller, err := c.config.Binaries.UpstreamPath(snapshotController)
	if err != nil {
		return err
	}
	definitions := os.DirFS(filepath.Join(filepath.Dir(controller), snapshotCRDs))
	if err := Apply(ctx, c.Plane.RESTConfig(), definitions); err != nil {
		return err
	}
	if err := Apply(ctx, c.Plane.RESTConfig(), rbac.Snapshots); err != nil {
		return err
	}
	if err := c.awaitSnapshotAPI(ctx); err != nil {
		return err
	}
	classes := fmt.Appendf(nil, snapshotClasses, driver.DriverName)
	err = ApplyYAML(ctx, c.Plane.RESTConfig(), classes)
	for missing := (*meta.NoKindMatchError)(nil); errors.As(err, &missing) && ctx.Err() == nil; { // discovery lags behind
		err = ApplyYAML(ctx, c.Plane.RESTConfig(), classes)
	}
	if err != nil {
		return err
	}
	_, err = c.keep(c.Plane.startUpstream(ctx, snapshotController,
		ServiceAccount(metav1.NamespaceSystem, snapshotController), Controller{}, []string{noQPS, noBurst}))
	if err != nil {
		return err
	}
	_, err = c.keep(c.Plane.startUpstream(ctx, snapshotSidecar, ServiceAccount(deploy.Namespace, snapshotSidecar),
		Controller{Name: snapshotSidecar + "-" + fileName(driver.DriverName)},
		[]string{"--csi-address=" + driver.Socket, noQPS, noBurst}))
	return err
}

// awaitSnapshotAPI waits until the API server serves the resources, for snapshot-controller ends without them.
func (c *Cluster) awaitSnapshotAPI(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Plane.RESTConfig())
	if err != nil {
		return err
	}
	group := schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}
	return wait.PollUntilContextCancel(ctx, followPoll, true, func(ctx context.Context) (bool, error) {
		for _, resource := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
			if _, err := client.Resource(group.WithResource(resource)).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
}
