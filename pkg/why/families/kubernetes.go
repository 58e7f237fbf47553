package families

// kubernetes are finalizers that Kubernetes itself sets.
var kubernetes = []Family{
	{
		Name: "Kubernetes", Finalizers: []string{"kubernetes.io/pv-protection"}, Kinds: []string{"PersistentVolume"},
		Controller: controllerManager(Controller{Loops: []string{"persistentvolume-protection-controller",
			"pv-protection"}}),
		Alternatives: []Controller{pvController},
		When:         "the volume is no longer bound to a claim",
		Alive: controllerManagerAlive +
			", or the Deployment exeunt-system/pv-controller and the Lease kube-system/pv-controller",
		Force:  "the volume goes while a claim uses its data; the claim becomes Lost",
		Source: kubernetesSource + "pkg/volume/util/finalizer.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"kubernetes.io/pvc-protection"}, Kinds: []string{"PersistentVolumeClaim"},
		Controller: controllerManager(Controller{Loops: []string{"persistentvolumeclaim-protection-controller",
			"pvc-protection"}}),
		Alternatives: []Controller{pvController},
		When:         "no pod uses the claim; a pod that has finished counts until it is deleted",
		Alive: controllerManagerAlive +
			", or the Deployment exeunt-system/pv-controller and the Lease kube-system/pv-controller",
		Force:  "the claim goes while a pod writes to its volume, and the data may be deleted under the pod",
		Source: kubernetesSource + "pkg/volume/util/finalizer.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"kubernetes.io/pv-controller"}, Kinds: []string{"PersistentVolume"},
		Controller: controllerManager(Controller{
			Loops:        []string{"persistentvolume-binder-controller", "persistentvolume-binder"},
			EventSources: []string{"persistentvolume-controller"},
			ErrorReasons: []string{"VolumeFailedDelete"}, SuccessReasons: []string{"VolumeRecycled"},
		}),
		Alternatives: []Controller{pvReclaimer},
		When:         "the in-tree plugin has deleted the disk, or the reclaim policy keeps the disk",
		Alive: controllerManagerAlive +
			", or the Deployment exeunt-system/pv-controller and the Lease kube-system/pv-controller",
		Force:  "the disk stays in storage and is paid for, and nobody knows of it any more",
		Source: "https://github.com/kubernetes/component-helpers/blob/master/storage/volume/pv_helpers.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"foregroundDeletion"},
		Controller:   garbageCollector,
		Alternatives: []Controller{ownCollector},
		When:         "no dependent with blockOwnerDeletion is left",
		Alive: controllerManagerAlive +
			", or the Deployment exeunt-system/garbage-collector and the Lease kube-system/garbage-collector",
		Force:  "dependents go later, in the background, or not at all",
		Source: "https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"orphan"},
		Controller:   garbageCollector,
		Alternatives: []Controller{ownCollector},
		When:         "no dependent names the object as its owner any more",
		Alive: controllerManagerAlive +
			", or the Deployment exeunt-system/garbage-collector and the Lease kube-system/garbage-collector",
		Force:  "dependents that still name the object as their owner are deleted with it",
		Source: "https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"kubernetes"}, Kinds: []string{"Namespace"},
		Controller: controllerManager(Controller{Loops: []string{"namespace-controller", "namespace"}}),
		When:       "no object is left in the namespace; the finalizer is in spec.finalizers",
		Alive:      controllerManagerAlive,
		Force:      "objects stay in etcd without their namespace, and come back when the namespace is created again",
		Source:     "https://github.com/kubernetes/api/blob/master/core/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"batch.kubernetes.io/job-tracking"}, Kinds: []string{"Pod"},
		Controller: controllerManager(Controller{Loops: []string{"job-controller", "job"}}),
		When:       "the Job has counted the pod in its status, or the Job is gone",
		Alive:      controllerManagerAlive,
		Force:      "the Job does not count the pod, and may run it once more",
		Source:     "https://github.com/kubernetes/api/blob/master/batch/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}, Kinds: []string{"Service"},
		Controller: cloudControllerManager,
		When:       "the cloud provider has deleted the load balancer",
		Alive:      "the Lease kube-system/cloud-controller-manager; on managed clusters the program runs outside of the cluster",
		Force:      "the load balancer stays in the cloud and is paid for, with its address and firewall rules",
		Source:     "https://github.com/kubernetes/cloud-provider/blob/master/service/helpers/helper.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"customresourcecleanup.apiextensions.k8s.io"},
		Kinds: []string{"CustomResourceDefinition"},
		Controller: Controller{
			Name: "kube-apiserver", Images: []string{"kube-apiserver"}, Commands: []string{"kube-apiserver"},
			Labels: map[string]string{"component": "kube-apiserver"}, ControlPlane: true, InAPIServer: true,
		},
		When:   "no custom resource of the definition is left",
		Alive:  "the API server answers",
		Force:  "custom resources stay in storage without their definition, and come back when the definition is created again",
		Source: "https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/apis/apiextensions/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"resource.kubernetes.io/delete-protection"},
		Kinds:      []string{"ResourceClaim"},
		Controller: controllerManager(Controller{Loops: []string{"resourceclaim-controller", "resource-claim-controller"}}),
		When:       "no pod has reserved the claim, and its devices are deallocated",
		Alive:      controllerManagerAlive,
		Force:      "a pod that runs loses the record of its devices, and the devices may be given to another pod",
		Source:     "https://github.com/kubernetes/api/blob/master/resource/v1/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"kubernetes.io/vac-protection"}, Kinds: []string{"VolumeAttributesClass"},
		Controller: controllerManager(Controller{Loops: []string{"volumeattributesclass-protection-controller"}}),
		When:       "no volume and no claim uses the class",
		Alive:      controllerManagerAlive,
		Force:      "claims and volumes name a class that is gone; a modification that is under way fails",
		Source:     kubernetesSource + "pkg/volume/util/finalizer.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"networking.k8s.io/service-cidr-finalizer"}, Kinds: []string{"ServiceCIDR"},
		Controller: controllerManager(Controller{Loops: []string{"service-cidr-controller"}}),
		When:       "no Service has an address of the range alone",
		Alive:      controllerManagerAlive,
		Force:      "Services keep addresses of a range that is no longer known",
		Source:     kubernetesSource + "pkg/controller/servicecidrs/servicecidrs_controller.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"scheduling.k8s.io/podgroup-protection"},
		Kinds:      []string{"PodGroup.scheduling.k8s.io"},
		Controller: controllerManager(Controller{Loops: []string{"podgroup-protection-controller"}}),
		When:       "no pod of the group is left, or all have finished",
		Alive:      controllerManagerAlive,
		Force:      "pods of the group that are not scheduled yet stay pending",
		Source:     kubernetesSource + "pkg/apis/scheduling/types.go",
	},
	{
		Name: "Kubernetes", Finalizers: []string{"networking.k8s.io/cluster-cidr-finalizer"}, Kinds: []string{"ClusterCIDR"},
		Controller: controllerManager(Controller{Loops: []string{"node-ipam-controller", "nodeipam"}}),
		When:       "no node has addresses of the range; Kubernetes 1.25 to 1.28 alone set the finalizer",
		Alive:      controllerManagerAlive,
		Force:      "nodes keep addresses of a range that is no longer known",
		Source:     "https://github.com/kubernetes/kubernetes/blob/release-1.28/pkg/controller/nodeipam/ipam/multi_cidr_range_allocator.go",
	},
}

const (
	kubernetesSource       = "https://github.com/kubernetes/kubernetes/blob/master/"
	controllerManagerAlive = "the Lease kube-system/kube-controller-manager; on managed clusters the program runs outside of the cluster"
)

// controllerManager returns kube-controller-manager with one of its loops.
func controllerManager(loop Controller) Controller {
	loop.Name = "kube-controller-manager"
	loop.Images = []string{"kube-controller-manager"}
	loop.Commands = []string{"kube-controller-manager"}
	loop.Labels = map[string]string{"component": "kube-controller-manager"}
	loop.Leases = []string{"kube-controller-manager"}
	loop.Namespaces = []string{"kube-system"}
	loop.ControlPlane = true
	return loop
}

// pvController runs the loops for volumes in place of kube-controller-manager.
var pvController = Controller{
	Name: "pv-controller", Images: []string{"pv-controller"}, Commands: []string{"pv-controller"},
	Labels: map[string]string{"app.kubernetes.io/name": "pv-controller"}, Leases: []string{"pv-controller"},
	Namespaces: []string{"exeunt-system"},
}

// pvReclaimer is pvController for volumes of in-tree plugins: of its loops, this one sends events.
var pvReclaimer = func(c Controller) Controller {
	c.EventSources, c.ErrorReasons, c.SuccessReasons = []string{"persistentvolume-controller"},
		[]string{"VolumeFailedDelete"}, []string{"VolumeRecycled"}
	return c
}(pvController)

var garbageCollector = controllerManager(Controller{
	Loops:   []string{"garbage-collector-controller", "garbagecollector"},
	OffArgs: []string{"--enable-garbage-collector=false"},
})

// ownCollector collects garbage in place of kube-controller-manager. Its warnings report no
// failed cleanup: they name kinds that could not be read, and owners that it released.
var ownCollector = Controller{
	Name: "garbage-collector", Images: []string{"garbage-collector"}, Commands: []string{"garbage-collector"},
	Labels: map[string]string{"app.kubernetes.io/name": "garbage-collector", "app.kubernetes.io/part-of": "exeunt"},
	Leases: []string{"garbage-collector"}, Namespaces: []string{"exeunt-system"},
	OffArgs: []string{"--dry-run", "--dry-run=true"},
}

var cloudControllerManager = Controller{
	Name: "cloud-controller-manager",
	Images: []string{
		"cloud-controller-manager", "azure-cloud-controller-manager", "openstack-cloud-controller-manager",
		"digitalocean-cloud-controller-manager", "hcloud-cloud-controller-manager", "linode-cloud-controller-manager",
	},
	Commands:       []string{"cloud-controller-manager"},
	Labels:         map[string]string{"component": "cloud-controller-manager"},
	Leases:         []string{"cloud-controller-manager", "k3s-cloud-controller-manager"},
	Namespaces:     []string{"kube-system"},
	EventSources:   []string{"service-controller"},
	ErrorReasons:   []string{"SyncLoadBalancerFailed", "DeleteLoadBalancerFailed"},
	SuccessReasons: []string{"DeletedLoadBalancer", "EnsuredLoadBalancer"},
	ControlPlane:   true,
	Loops:          []string{"service-lb-controller", "service"},
}
