package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// longestRetry bounds how long a kubelet waits after a request that failed.
const longestRetry = 500 * time.Millisecond

// period is how often a kubelet renews its Lease and looks at the status of its Node: of a Lease of 40 s, each 10 s.
func (c *Cloud) period() time.Duration { return c.config.LeaseDuration / 4 }

// runKubelet registers the Node, at the first start only, and keeps its Lease, its status and its mirror pods.
func (m *machine) runKubelet(ctx context.Context) {
	if m.nodeUID == "" && !m.repeat(ctx, m.register) {
		return
	}
	m.cloud.mu.Lock()
	if ctx.Err() == nil {
		m.catchUp()
	}
	m.cloud.mu.Unlock()
	m.cloud.registered(m)
	m.cloud.group.Go(func() { m.keepMirrors(ctx) })
	m.keepLease(ctx)
}

// keepLease renews the Lease and then reports the status, once in each period.
func (m *machine) keepLease(ctx context.Context) {
	next := time.Now()
	for m.until(ctx, func(now time.Time) (bool, time.Time) { return m.connected() && !now.Before(next), next }) {
		renewed := m.renewLease(ctx)
		reported := m.reportStatus(ctx)
		next = time.Now().Add(m.cloud.period())
		if renewed != nil || reported != nil {
			next = time.Now().Add(min(m.cloud.period(), longestRetry))
		}
	}
}

// repeat sends a request whenever the kubelet reaches the API server, until it succeeds.
func (m *machine) repeat(ctx context.Context, send func(context.Context) error) bool {
	next := time.Now()
	for m.until(ctx, func(now time.Time) (bool, time.Time) { return m.connected() && !now.Before(next), next }) {
		err := send(ctx)
		if err == nil {
			return true
		}
		m.cloud.warn(fmt.Errorf("%s: %w", m.name, err))
		next = time.Now().Add(longestRetry)
	}
	return false
}

// register creates the Node and its CSINode, or takes those that are there.
func (m *machine) register(ctx context.Context) error {
	nodes := m.cloud.client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, m.newNode(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = nodes.Get(ctx, m.name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("register Node: %w", err)
	}
	_, err = m.cloud.client.StorageV1().CSINodes().Create(ctx, m.newCSINode(node.UID), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSINode: %w", err)
	}
	m.cloud.mu.Lock()
	defer m.cloud.mu.Unlock()
	m.nodeUID = node.UID
	return nil
}

func (m *machine) newNode() *v1.Node {
	room := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourcePods: resource.MustParse("500"),
	}
	address := fmt.Sprintf("10.200.%d.%d", m.index/256, m.index%256)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.name,
			Labels: map[string]string{v1.LabelHostname: m.name, v1.LabelOSStable: "linux",
				v1.LabelArchStable: "amd64"},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: v1.NodeSpec{ProviderID: m.providerID},
		Status: v1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []v1.NodeCondition{readyCondition(time.Now())},
			Addresses: []v1.NodeAddress{{Type: v1.NodeHostName, Address: m.name},
				{Type: v1.NodeInternalIP, Address: address}},
			NodeInfo: v1.NodeSystemInfo{KubeletVersion: "v1.36.0-cloudmock", OperatingSystem: "linux",
				Architecture: "amd64"},
		},
	}
}

func readyCondition(now time.Time) v1.NodeCondition {
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
		Message: "the simulated kubelet works", LastHeartbeatTime: metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now)}
}

func (m *machine) newCSINode(node types.UID) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, OwnerReferences: m.owned(node)},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: DriverName, NodeID: m.providerID}}},
	}
}

// owned returns the owner reference of what ends with the Node.
func (m *machine) owned(node types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: m.name, UID: node}}
}

// renewLease renews the Lease, which is created again if it was deleted while the Node is there.
func (m *machine) renewLease(ctx context.Context) error {
	leases := m.cloud.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	body := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	_, err := leases.Patch(ctx, m.name, types.MergePatchType, body, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	node, err := m.cloud.client.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, OwnerReferences: m.owned(node.UID)},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &m.name, RenewTime: &now,
			LeaseDurationSeconds: ptr.To(int32(m.cloud.config.LeaseDuration / time.Second))},
	}, metav1.CreateOptions{})
	return err
}

// reportStatus makes the Node Ready, and reports the volumes in use, if the API says otherwise.
func (m *machine) reportStatus(ctx context.Context) error {
	node := m.cloud.node(m.name)
	if node == nil || node.UID != m.nodeUID {
		return nil
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	if ready {
		return m.reportVolumes(ctx)
	}
	return m.patchStatus(ctx, map[string]any{"conditions": []v1.NodeCondition{readyCondition(time.Now())}})
}

// reportVolumes writes volumesInUse of the Node, if they have changed.
func (m *machine) reportVolumes(ctx context.Context) error {
	m.writing <- struct{}{}
	defer func() { <-m.writing }()
	m.cloud.mu.Lock()
	names := m.volumeNames()
	same := slices.Equal(names, m.reported)
	m.cloud.mu.Unlock()
	if same {
		return nil
	}
	err := m.patchStatus(ctx, map[string]any{"volumesInUse": names})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		m.cloud.mu.Lock()
		m.reported = names
		m.cloud.mu.Unlock()
	}
	return err
}

// patchStatus changes the status of the Node that the machine has registered.
func (m *machine) patchStatus(ctx context.Context, status map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.nodeUID}, "status": status})
	if err != nil {
		return err
	}
	_, err = m.cloud.client.CoreV1().Nodes().Patch(ctx, m.name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{}, "status")
	return err
}
