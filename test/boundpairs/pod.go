package boundpairs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Pod returns the pod of a StatefulSet that uses the claim of the pair with that number, 5 KB as an API server sends it.
func Pod(number int) *v1.Pod {
	name := fmt.Sprintf("database-%d", number)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace(number), Name: name, UID: uid(3, number), ResourceVersion: fmt.Sprint(1_000_002 + 4*number),
			CreationTimestamp: created, GenerateName: "database-",
			Labels: map[string]string{"app.kubernetes.io/name": "database", "app.kubernetes.io/instance": namespace(number),
				"statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": "database-5f6d7c8b9"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "database",
				UID: uid(4, number%50), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("kube-controller-manager", "",
					`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:controller-revision-hash":{},"f:statefulset.kubernetes.io/pod-name":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"00000004-0000-4000-8000-000000000000\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"database\"}":{".":{},"f:env":{},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{},"f:name":{},"f:ports":{},"f:readinessProbe":{},"f:resources":{},"f:volumeMounts":{}},"k:{\"name\":\"exporter\"}":{".":{},"f:args":{},"f:image":{},"f:name":{}}},"f:dnsPolicy":{},"f:hostname":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{}}}`),
				managed("kubelet", "status",
					`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{},"k:{\"type\":\"Initialized\"}":{},"k:{\"type\":\"Ready\"}":{}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}}`),
			},
		},
		Spec: v1.PodSpec{
			Containers: []v1.Container{container("database", "registry.example.com/team/database:16.4"),
				container("exporter", "registry.example.com/team/exporter:0.15.0")},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(number)}}}, token()},
			NodeName: fmt.Sprintf("node-%d", number%1000), Hostname: name, ServiceAccountName: "database",
			RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst, SchedulerName: v1.DefaultSchedulerName,
			SecurityContext: &v1.PodSecurityContext{RunAsUser: ptr.To[int64](999), FSGroup: ptr.To[int64](999)},
			Tolerations: []v1.Toleration{
				{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
					TolerationSeconds: ptr.To[int64](300)},
				{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
					TolerationSeconds: ptr.To[int64](300)},
			},
			TerminationGracePeriodSeconds: ptr.To[int64](30),
		},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, HostIP: "10.1.2.3", PodIP: "10.244.7.8", PodIPs: []v1.PodIP{{IP: "10.244.7.8"}},
			StartTime: &created, QOSClass: v1.PodQOSBurstable,
			Conditions: []v1.PodCondition{conditionOf(v1.PodScheduled), conditionOf(v1.PodInitialized),
				conditionOf(v1.ContainersReady), conditionOf(v1.PodReady)},
			ContainerStatuses: []v1.ContainerStatus{running("database", number), running("exporter", number)},
		},
	}
}

// container returns a container with settings, probes and limits.
func container(name, image string) v1.Container {
	probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz",
		Port: intstr.FromInt32(8080), Scheme: v1.URISchemeHTTP}}, PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 3}
	made := v1.Container{
		Name: name, Image: image, ImagePullPolicy: v1.PullIfNotPresent, Args: []string{"--data=/var/lib/database", "--port=8080"},
		Ports:     []v1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP}},
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/var/lib/database"},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		LivenessProbe: probe, ReadinessProbe: probe, TerminationMessagePath: v1.TerminationMessagePathDefault,
		TerminationMessagePolicy: v1.TerminationMessageReadFile,
	}
	for i := range 8 {
		made.Env = append(made.Env, v1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("value-%d-of-the-setting", i)})
	}
	return made
}

// token returns the volume that the API server adds to each pod.
func token() v1.Volume {
	return v1.Volume{Name: "kube-api-access", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
		Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items: []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		}}}}
}

func conditionOf(kind v1.PodConditionType) v1.PodCondition {
	return v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: created}
}

func running(name string, number int) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: name, Ready: true, Started: ptr.To(true), Image: "registry.example.com/team/" + name,
		ImageID:     "registry.example.com/team/" + name + "@sha256:4c1b9a7f3d2e5c6b8a9f0e1d2c3b4a5f6e7d8c9b0a1f2e3d4c5b6a7f8e9d0c1b",
		ContainerID: fmt.Sprintf("containerd://%064x", number),
		State:       v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: created}},
	}
}
