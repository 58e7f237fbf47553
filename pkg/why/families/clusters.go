package families

// clusters are finalizers of programs that make clusters and machines, and of programs that
// manage several clusters.
var clusters = []Family{
	{
		Name: "Cluster API", Finalizers: []string{"*.cluster.x-k8s.io", "cluster.x-k8s.io/*"},
		Kinds: []string{
			"Cluster.cluster.x-k8s.io", "Machine.cluster.x-k8s.io", "MachineSet.cluster.x-k8s.io", "MachineDeployment.cluster.x-k8s.io",
			"MachinePool.cluster.x-k8s.io",
		},
		Controller: Controller{
			Name: "capi-controller-manager", Images: []string{"cluster-api-controller"},
			Leases: []string{"controller-leader-election-capi"}, Namespaces: []string{"capi-system"},
			Needs: []string{"capi-validating-webhook-configuration", "clusters.cluster.x-k8s.io"},
		},
		When:   "the machines and the infrastructure of the cluster are deleted; a machine is drained first",
		Alive:  "the Deployment capi-system/capi-controller-manager and its Lease controller-leader-election-capi",
		Force:  "machines go on running and are paid for",
		Source: "https://github.com/kubernetes-sigs/cluster-api/blob/main/api/core/v1beta1/cluster_types.go",
	},
	{
		Name: "Cluster API", Finalizers: []string{"kubeadm.controlplane.cluster.x-k8s.io"}, Kinds: []string{"KubeadmControlPlane.controlplane.cluster.x-k8s.io"},
		Controller: Controller{
			Name: "capi-kubeadm-control-plane-controller-manager", Images: []string{"kubeadm-control-plane-controller"},
			Leases: []string{"kubeadm-control-plane-manager-leader-election-capi"}, Namespaces: []string{"capi-kubeadm-control-plane-system"},
			Needs: []string{"capi-kubeadm-control-plane-validating-webhook-configuration", "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"},
		},
		When:   "the machines of the control plane are deleted, after all other machines",
		Alive:  "the Deployment capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-controller-manager",
		Force:  "machines of the control plane go on running and are paid for",
		Source: "https://github.com/kubernetes-sigs/cluster-api/blob/main/api/controlplane/kubeadm/v1beta1/kubeadm_control_plane_types.go",
	},
	{
		Name: "Cluster API", Finalizers: []string{"*.infrastructure.cluster.x-k8s.io"},
		Controller: Controller{Name: "the infrastructure provider of the cluster"},
		When:       "the infrastructure of the cluster or the machine is deleted",
		Alive:      "the Deployments with the label cluster.x-k8s.io/provider",
		Force:      "machines, networks and disks stay in the cloud and are paid for",
		Source:     "https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/book/src/developer/providers/contracts/infra-cluster.md",
	},
	infrastructure("AWS", "aws*", "capa", []string{"capa-validating-webhook-configuration"}, "https://github.com/kubernetes-sigs/cluster-api-provider-aws/blob/main/api/v1beta2/awscluster_types.go"),
	infrastructure("Azure", "azure*", "capz", []string{"capz-validating-webhook-configuration"}, "https://github.com/kubernetes-sigs/cluster-api-provider-azure/blob/main/api/v1beta1/azurecluster_types.go", "controller-leader-election-capz"),
	infrastructure("vSphere", "vsphere*", "capv", nil, "https://github.com/kubernetes-sigs/cluster-api-provider-vsphere/blob/main/apis/v1beta1/vspherevm_types.go"),
	{
		Name: "Metal3", Finalizers: []string{"baremetalhost.metal3.io"}, Kinds: []string{"BareMetalHost.metal3.io"},
		Controller: Controller{Name: "baremetal-operator", Images: []string{"baremetal-operator"}, Namespaces: []string{"baremetal-operator-system"}},
		When:       "the host is deprovisioned and powered off",
		Alive:      "the Deployment baremetal-operator-controller-manager",
		Force:      "the host goes on running, and Ironic still knows of the host",
		Source:     "https://github.com/metal3-io/baremetal-operator/blob/main/apis/metal3.io/v1alpha1/baremetalhost_types.go",
	},
	{
		Name: "OpenShift machine API", Finalizers: []string{"machine.machine.openshift.io"}, Kinds: []string{"Machine.machine.openshift.io"},
		Controller: Controller{Name: "machine-api-controllers", Labels: map[string]string{"api": "clusterapi", "k8s-app": "controller"}, Namespaces: []string{"openshift-machine-api"}},
		When:       "the node is drained and the machine is terminated",
		Alive:      "the Deployment openshift-machine-api/machine-api-controllers",
		Force:      "the machine goes on running and is paid for",
		Source:     "https://github.com/openshift/api/blob/master/machine/v1beta1/types_machine.go",
	},
	{
		Name: "OpenShift ingress operator", Finalizers: []string{"ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"},
		Kinds:      []string{"IngressController.operator.openshift.io"},
		Controller: Controller{Name: "ingress-operator", Commands: []string{"ingress-operator"}, Namespaces: []string{"openshift-ingress-operator"}},
		When:       "the load balancer, the DNS records and the router pods are removed",
		Alive:      "the Deployment openshift-ingress-operator/ingress-operator",
		Force:      "the load balancer and DNS records stay in the cloud",
		Source:     "https://github.com/openshift/cluster-ingress-operator/blob/master/pkg/manifests/manifests.go",
	},
	{
		Name: "Operator Lifecycle Manager", Finalizers: []string{"operators.coreos.com/csv-cleanup"}, Kinds: []string{"ClusterServiceVersion.operators.coreos.com"},
		Controller: Controller{Name: "olm-operator", Labels: map[string]string{"app": "olm-operator"}, Namespaces: []string{"olm", "openshift-operator-lifecycle-manager"}},
		When:       "the webhooks, roles and role bindings of the operator are removed",
		Alive:      "the Deployment olm-operator",
		Force:      "webhook configurations of an operator that is gone stay, and may refuse writes",
		Source:     "https://github.com/operator-framework/operator-lifecycle-manager/blob/master/pkg/controller/operators/olm/operator.go",
	},
	{
		Name: "Hive", Finalizers: []string{"hive.openshift.io/deprovision"}, Kinds: []string{"ClusterDeployment.hive.openshift.io"},
		Controller: Controller{
			Name: "hive-controllers", Leases: []string{"hive-controllers-leader"}, Namespaces: []string{"hive"}, Needs: []string{"clusterdeprovisions.hive.openshift.io"},
		},
		When:   "the ClusterDeprovision has removed the infrastructure of the cluster",
		Alive:  "the Deployment hive/hive-controllers and its Lease hive-controllers-leader",
		Force:  "machines, networks and DNS zones of the cluster stay in the cloud and are paid for",
		Source: "https://github.com/openshift/hive/blob/master/apis/hive/v1/clusterdeployment_types.go",
	},
	{
		Name: "Open Cluster Management", Finalizers: []string{"cluster.open-cluster-management.io/api-resource-cleanup"},
		Kinds:      []string{"ManagedCluster.cluster.open-cluster-management.io"},
		Controller: Controller{Name: "cluster-manager-registration-controller", Namespaces: []string{"open-cluster-management-hub"}},
		When:       "the works and the roles of the cluster are removed from the hub",
		Alive:      "the Deployment open-cluster-management-hub/cluster-manager-registration-controller",
		Force:      "roles of the cluster stay on the hub, and applied works stay in the cluster",
		Source:     "https://github.com/open-cluster-management-io/api/blob/main/cluster/v1/types.go",
	},
	{
		Name: "Karmada",
		Finalizers: []string{
			"karmada.io/cluster-controller", "karmada.io/execution-controller", "karmada.io/binding-controller",
		},
		Controller: Controller{
			Name: "karmada-controller-manager", Images: []string{"karmada-controller-manager"}, Commands: []string{"karmada-controller-manager"},
			Namespaces: []string{"karmada-system"}, ControlPlane: true, RunsIn: "the host cluster of Karmada",
		},
		When:   "the works are removed from the member clusters",
		Alive:  "the Deployment karmada-system/karmada-controller-manager, in the host cluster",
		Force:  "objects stay in the member clusters",
		Source: "https://github.com/karmada-io/karmada/blob/master/pkg/util/constants.go",
	},
	{
		Name: "Gardener", Finalizers: []string{"gardener", "gardener.cloud/gardener", "garden.sapcloud.io/gardener"},
		Controller: Controller{Name: "gardener-controller-manager", Images: []string{"gardenlet", "gardener-controller-manager"}, Namespaces: []string{"garden"}, ControlPlane: true, RunsIn: "the garden cluster or the seed"},
		When:       "the infrastructure of the shoot is deleted, or nothing uses the object",
		Alive:      "the Deployments gardener-controller-manager in the garden and gardenlet in the seed",
		Force:      "machines, networks and disks of the shoot stay in the cloud and are paid for",
		Source:     "https://github.com/gardener/gardener/blob/master/pkg/apis/core/v1beta1/types_common.go",
	},
	{
		Name: "etcd-druid", Finalizers: []string{"druid.gardener.cloud/etcd-druid"}, Kinds: []string{"Etcd.druid.gardener.cloud", "Secret"},
		Controller: Controller{Name: "etcd-druid", Images: []string{"etcd-druid"}},
		When:       "the StatefulSet of the etcd and its jobs are removed; a secret waits until no etcd uses it",
		Alive:      "the Deployment etcd-druid",
		Force:      "the StatefulSet of the etcd, or copies of its backups, stay behind",
		Source:     "https://github.com/gardener/etcd-druid/blob/master/api/core/v1alpha1/constants.go",
	},
	{
		Name: "Rancher", Finalizers: []string{"controller.cattle.io/*"},
		Controller: Controller{
			Name: "rancher", Images: []string{"rancher/rancher"}, Labels: map[string]string{"app": "rancher"}, Namespaces: []string{"cattle-system"}, ControlPlane: true,
			RunsIn: "the cluster of Rancher",
		},
		When:   "Rancher has removed its roles and bindings of the object; in a downstream cluster Rancher does so from outside",
		Alive:  "the Deployment cattle-system/rancher, in the cluster of Rancher",
		Force:  "roles and bindings that Rancher made stay behind",
		Source: "https://github.com/rancher/norman/blob/master/lifecycle/object.go",
	},
	{
		Name: "Rancher Wrangler", Finalizers: []string{"wrangler.cattle.io/*"},
		Controller: Controller{Name: "a program of Rancher, Harvester, k3s or rke2", RunsIn: "the cluster of Rancher, or the server process of k3s or rke2"},
		When:       "the handler that the finalizer names has run",
		Alive:      "the programs of Rancher and Harvester; k3s and rke2 run their handlers in the server",
		Force:      "whatever the handler removes stays behind",
		Source:     "https://github.com/rancher/wrangler/blob/main/pkg/generic/remove.go",
	},
	{
		Name: "Fleet", Finalizers: []string{"fleet.cattle.io/*"},
		Controller: Controller{
			Name: "fleet-controller", Images: []string{"rancher/fleet"}, Labels: map[string]string{"app": "fleet-controller"},
			Leases: []string{"fleet-controller-leader-election*"}, Namespaces: []string{"cattle-fleet-system"},
		},
		When:   "the bundles and their deployments in the clusters are removed",
		Alive:  "the Deployment cattle-fleet-system/fleet-controller and its Lease fleet-controller-leader-election-shard",
		Force:  "what the bundle deployed stays in the clusters",
		Source: "https://github.com/rancher/fleet/blob/main/internal/cmd/controller/finalize/finalize.go",
	},
	{
		Name: "Node maintenance", Finalizers: []string{"foregroundDeleteNodeMaintenance"}, Kinds: []string{"NodeMaintenance"},
		Controller: Controller{Name: "node-maintenance-operator", Images: []string{"node-maintenance-operator"}},
		When:       "the node takes pods again",
		Alive:      "the Deployment node-maintenance-operator-controller-manager",
		Force:      "the node stays cordoned",
		Source:     "https://github.com/medik8s/node-maintenance-operator/blob/main/api/v1beta1/nodemaintenance_types.go",
	},
	{
		Name: "Self node remediation", Finalizers: []string{"self-node-remediation.medik8s.io/snr-finalizer"}, Kinds: []string{"SelfNodeRemediation"},
		Controller: Controller{Name: "self-node-remediation-operator", Images: []string{"self-node-remediation-operator"}},
		When:       "the node is fenced, its pods are deleted, and its taints are removed",
		Alive:      "the Deployment self-node-remediation-controller-manager",
		Force:      "the node keeps taints that keep pods away",
		Source:     "https://github.com/medik8s/self-node-remediation/blob/main/internal/controller/selfnoderemediation_controller.go",
	},
	{
		Name: "Fence agents remediation", Finalizers: []string{"fence-agents-remediation.medik8s.io/far-finalizer"}, Kinds: []string{"FenceAgentsRemediation"},
		Controller: Controller{Name: "fence-agents-remediation-operator", Images: []string{"fence-agents-remediation-operator"}},
		When:       "the taints of the node are removed",
		Alive:      "the Deployment fence-agents-remediation-controller-manager",
		Force:      "the node keeps taints that keep pods away",
		Source:     "https://github.com/medik8s/fence-agents-remediation/blob/main/api/v1alpha1/fenceagentsremediation_types.go",
	},
}

// infrastructure returns the row of an infrastructure provider of Cluster API.
func infrastructure(cloud, kinds, short string, needs []string, source string, leases ...string) Family {
	return Family{
		Name: "Cluster API provider " + cloud, Finalizers: []string{kinds + ".infrastructure.cluster.x-k8s.io"},
		Controller: Controller{
			Name: short + "-controller-manager", Images: []string{"cluster-api-" + infrastructureImages[short] + "-controller"},
			Leases: leases, Namespaces: []string{short + "-system"}, Needs: needs,
		},
		When:   "the infrastructure of the cluster or the machine is deleted",
		Alive:  "the Deployment " + short + "-system/" + short + "-controller-manager",
		Force:  "machines, networks and disks stay and are paid for",
		Source: source,
	}
}

// infrastructureImages are the names of the clouds in the names of images.
var infrastructureImages = map[string]string{"capa": "aws", "capz": "azure", "capv": "vsphere"}
