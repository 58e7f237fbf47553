package demo

import (
	"context"
	"strings"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// workloads are three pods under one budget that only nodes of their pool have room for, a pod that ignores SIGTERM,
// one that nobody may disrupt, and one with a disk.
const workloads = `
apiVersion: v1
kind: Namespace
metadata: {name: SIDE}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: SIDE}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: SIDE}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {cloudmock.exeunt.io/exit-after: 3s}}
    spec:
      terminationGracePeriodSeconds: 5
      nodeSelector: {pool: SIDE}
      containers: [{name: main, image: web}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: deaf, namespace: SIDE}
spec:
  selector: {matchLabels: {app: deaf}}
  template:
    metadata: {labels: {app: deaf}, annotations: {cloudmock.exeunt.io/ignore-sigterm: "true"}}
    spec:
      terminationGracePeriodSeconds: 6
      nodeSelector: {side: SIDE}
      containers: [{name: main, image: deaf}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: batch, namespace: SIDE}
spec:
  selector: {matchLabels: {app: batch}}
  template:
    metadata:
      labels: {app: batch}
      annotations: {karpenter.sh/do-not-disrupt: "true", cloudmock.exeunt.io/exit-after: 2s}
    spec:
      terminationGracePeriodSeconds: 5
      nodeSelector: {side: SIDE}
      containers: [{name: main, image: batch}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-SIDE}
spec:
  persistentVolumeReclaimPolicy: Retain
  storageClassName: SIDE
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  claimRef: {namespace: SIDE, name: data-db-0}
  csi: {driver: DRIVER, volumeHandle: disk-SIDE}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: SIDE}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {cloudmock.exeunt.io/exit-after: 2s}}
    spec:
      terminationGracePeriodSeconds: 5
      nodeSelector: {side: SIDE}
      containers: [{name: main, image: db, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: SIDE, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// ApplyWorkloads creates pods that are hard to end, in a namespace of this name. Nodes must have the label side of this
// value, and for the pods under the budget the label pool, too.
func (c *Cluster) ApplyWorkloads(ctx context.Context, side string) error {
	text := strings.NewReplacer("SIDE", side, "DRIVER", machines.DriverName).Replace(workloads)
	return sandbox.ApplyYAML(ctx, c.sandbox.Plane.RESTConfig(), []byte(text))
}

// Disk returns the handle of the disk of the workloads.
func Disk(side string) string { return "disk-" + side }
