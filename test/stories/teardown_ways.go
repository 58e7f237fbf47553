package stories

import (
	"context"
	"fmt"
	"os/exec"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	teardownNamespace = "shop"
	// earlyVolumes are those of the StatefulSet and the one to keep; the next one is answered late.
	earlyVolumes = 3
)

// teardownObjects are what a cluster has before its end.
const teardownObjects = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + className + `}
provisioner: ` + csimock.DefaultName + `
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + retainClass + `}
provisioner: ` + csimock.DefaultName + `
reclaimPolicy: Retain
---
apiVersion: v1
kind: Namespace
metadata: {name: ` + teardownNamespace + `}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ` + teardownNamespace + `}
spec: {type: LoadBalancer, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: ` + teardownNamespace + `}
spec: {type: LoadBalancer, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: ` + teardownNamespace + `}
spec: {type: LoadBalancer, ports: [{port: 443}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: archive, namespace: ` + teardownNamespace + `}
spec: {storageClassName: ` + retainClass + `, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: ` + teardownNamespace + `}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: main, image: db, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: ` + className + `, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

const teardownSnapshot = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: nightly, namespace: ` + teardownNamespace + `}
spec: {volumeSnapshotClassName: delete, source: {persistentVolumeClaimName: data-db-0}}
`

// fill creates the objects, and returns while the last volume is being created.
func (e *ending) fill(ctx context.Context) error {
	config := e.sandbox.Plane.RESTConfig()
	return inOrder(
		func() error {
			e.say("a StatefulSet with two volumes, three load balancers, a volume with policy Retain")
			return sandbox.ApplyYAML(ctx, config, []byte(teardownObjects))
		},
		func() error { return e.awaitBound(ctx, earlyVolumes) },
		func() error { return e.awaitServices(ctx) },
		func() error { return e.awaitPods(ctx) },
		func() error {
			e.say("a snapshot of data-db-0")
			return sandbox.ApplyYAML(ctx, config, []byte(teardownSnapshot))
		},
		func() error { return e.awaitSnapshot(ctx) },
		func() error { return e.findKept(ctx) },
		func() error {
			e.say("a claim whose volume is being created: the storage system has it, and answers late")
			return e.create(ctx, className, "late")
		},
		func() error {
			return e.await(ctx, "the storage system has the last volume", func(ctx context.Context) (bool, error) {
				handles, err := sandbox.StoredVolumes(ctx, e.driver.Socket)
				return err == nil && len(handles) == earlyVolumes+1, err
			})
		})
}

// awaitServices waits until all Services have their load balancers.
func (e *ending) awaitServices(ctx context.Context) error {
	return e.await(ctx, "the Services have addresses", func(ctx context.Context) (bool, error) {
		services, err := e.loadBalancers(ctx)
		for _, service := range services {
			if len(service.Status.LoadBalancer.Ingress) == 0 {
				return false, err
			}
		}
		return err == nil && len(services) == 3, err
	})
}

// loadBalancers returns the Services of type LoadBalancer.
func (e *ending) loadBalancers(ctx context.Context) ([]v1.Service, error) {
	list, err := e.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	var services []v1.Service
	for _, service := range list.Items {
		if service.Spec.Type == v1.ServiceTypeLoadBalancer {
			services = append(services, service)
		}
	}
	return services, nil
}

func (e *ending) awaitPods(ctx context.Context) error {
	return e.await(ctx, "the pods run", func(ctx context.Context) (bool, error) {
		set, err := e.client.AppsV1().StatefulSets(e.namespace).Get(ctx, "db", metav1.GetOptions{})
		return err == nil && set.Status.ReadyReplicas == *set.Spec.Replicas, err
	})
}

func (e *ending) awaitSnapshot(ctx context.Context) error {
	client, err := dynamic.NewForConfig(e.sandbox.Plane.RESTConfig())
	if err != nil {
		return err
	}
	snapshots := schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	return e.await(ctx, "the snapshot is taken", func(ctx context.Context) (bool, error) {
		snapshot, err := client.Resource(snapshots).Namespace(e.namespace).Get(ctx, "nightly", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ready, _, err := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
		return ready, err
	})
}

// findKept finds the handle of the volume with policy Retain.
func (e *ending) findKept(ctx context.Context) error {
	volumes, err := e.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	for _, volume := range volumes.Items {
		if volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain {
			e.kept = volume.Spec.CSI.VolumeHandle
			return nil
		}
	}
	return fmt.Errorf("no volume has policy %s", v1.PersistentVolumeReclaimRetain)
}

// deleteServices deletes what holds load balancers, and waits, as eksctl does.
func (e *ending) deleteServices(ctx context.Context) error {
	e.say("kubectl delete service web api metrics -n " + e.namespace + "  # as eksctl delete cluster does")
	services, err := e.loadBalancers(ctx)
	if err != nil {
		return err
	}
	for _, service := range services {
		err := e.client.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, metav1.DeleteOptions{})
		if err := ignoreGone(err, "delete Service"); err != nil {
			return err
		}
	}
	return e.await(ctx, "no Service of type LoadBalancer is left", func(ctx context.Context) (bool, error) {
		left, err := e.loadBalancers(ctx)
		return err == nil && len(left) == 0, err
	})
}

// deleteClaimsAndWait is the script that many have. It deletes the StatefulSet, whose pods would keep the claims, and
// does not wait for volumes with policy Retain.
func (e *ending) deleteClaimsAndWait(ctx context.Context) error {
	return inOrder(
		func() error {
			e.say("kubectl delete statefulset --all -n " + e.namespace)
			err := e.client.AppsV1().StatefulSets(e.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			return ignoreGone(err, "delete StatefulSets")
		},
		func() error { return e.deleteClaims(ctx) },
		func() error {
			return e.await(ctx, "no PersistentVolume with policy Delete is left", func(ctx context.Context) (bool, error) {
				volumes, err := e.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
				if err != nil {
					return false, err
				}
				for _, volume := range volumes.Items {
					if volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
						return false, nil
					}
				}
				return true, nil
			})
		},
		func() error {
			e.say("kubectl get pv  # none with policy Delete is left")
			return nil
		})
}

// idLength is how many characters of the ID of a cluster a person gives.
const idLength = 8

// tearDown runs our command, as its users do.
func (e *ending) tearDown(ctx context.Context) error {
	program, err := e.binaries.Path("exeunt")
	if err != nil {
		return err
	}
	system, err := e.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the ID of the cluster: %w", err)
	}
	confirm := "--confirm=" + string(system.UID)[:idLength]
	e.say("kubectl exeunt teardown " + confirm)
	command := exec.CommandContext(ctx, program, "teardown", confirm, "--kubeconfig="+e.sandbox.Plane.AdminKubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	e.say("exit code 0")
	return nil
}
