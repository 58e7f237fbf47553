package families

// cloud are finalizers of programs that make load balancers, machines and other resources
// of cloud providers.
var cloud = []Family{
	{
		Name: "AWS Load Balancer Controller", Finalizers: []string{"ingress.k8s.aws/resources", "group.ingress.k8s.aws/*"},
		Kinds:      []string{"Ingress"},
		Controller: awsLoadBalancer, Alternatives: []Controller{eksAutoMode},
		When:   "the load balancer, its listeners and its security groups are deleted, or no longer have rules of the Ingress",
		Alive:  awsLoadBalancerAlive,
		Force:  "the load balancer stays in AWS and is paid for",
		Source: awsLoadBalancerSource,
	},
	{
		Name: "AWS Load Balancer Controller", Finalizers: []string{"service.k8s.aws/resources"}, Kinds: []string{"Service"},
		Controller: awsLoadBalancer, Alternatives: []Controller{eksAutoMode},
		When:   "the Network Load Balancer of the Service is deleted",
		Alive:  awsLoadBalancerAlive,
		Force:  "the load balancer stays in AWS and is paid for",
		Source: awsLoadBalancerSource,
	},
	{
		Name: "AWS Load Balancer Controller", Finalizers: []string{"elbv2.k8s.aws/resources"},
		Controller: awsLoadBalancer, Alternatives: []Controller{eksAutoMode},
		When:   "the targets are deregistered from the target group, and the rules of the security groups are removed",
		Alive:  awsLoadBalancerAlive,
		Force:  "targets stay registered, and rules stay in the security groups",
		Source: "https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/main/controllers/elbv2/targetgroupbinding_controller.go",
	},
	{
		Name: "AWS Load Balancer Controller", Finalizers: []string{"gateway.k8s.aws/*", "aga.k8s.aws/resources"},
		Controller: awsLoadBalancer, Alternatives: []Controller{eksAutoMode},
		When:   "the load balancer of the Gateway or the accelerator is deleted; a configuration waits until nothing uses it",
		Alive:  awsLoadBalancerAlive,
		Force:  "the load balancer or the accelerator stays in AWS and is paid for",
		Source: awsLoadBalancerSource,
	},
	{
		Name: "AWS Controllers for Kubernetes", Finalizers: []string{"finalizers.*.services.k8s.aws/*"},
		Controller: Controller{Name: "the ACK controller of the service", Namespaces: []string{"ack-system"}},
		When:       "the resource is deleted in AWS, or its deletion policy is retain",
		Alive:      "the Deployment ack-SERVICE-controller; on EKS with capabilities it runs outside of the cluster",
		Force:      "the resource stays in AWS and is paid for",
		Source:     "https://github.com/aws-controllers-k8s/code-generator/blob/main/templates/pkg/resource/descriptor.go.tpl",
	},
	{
		Name: "Karpenter", Finalizers: []string{"karpenter.sh/termination"},
		Kinds:      []string{"Node", "NodeClaim.karpenter.sh"},
		Controller: karpenter, Alternatives: []Controller{eksAutoNodes, aksNodes},
		When:   "the node is drained, its volumes are detached, and the machine is terminated",
		Alive:  karpenterAlive,
		Force:  "the machine goes on running and is paid for, and its pods with it",
		Source: "https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/apis/v1/labels.go",
	},
	{
		Name: "Exeunt", Finalizers: []string{"exeunt.io/node-termination"},
		Kinds:      []string{"Node", "NodeClaim.karpenter.sh"},
		Controller: nodeTerminator,
		When: "the node is drained and its volumes are detached, or its deadline has come and its machine is proven to be off; " +
			"at once if the node lost its label",
		Alive: "the Deployment exeunt-system/node-terminator and the Lease kube-system/node-terminator",
		Force: "pods that run are not ended cleanly, disks stay attached for minutes, and the machine runs on and is paid for; " +
			"what runs on it may write to a disk that another node attaches",
		Source: "https://github.com/exeunt-io/exeunt/blob/main/pkg/termination/termination.go",
	},
	{
		Name: "Exeunt", Finalizers: []string{"lifecycle.exeunt.io/teardown"},
		Kinds:      []string{"Alive.lifecycle.exeunt.io"},
		Controller: teardownRunner,
		When: "everything that the teardown has to delete is gone, and the record says so; other finalizers of Alive are those of " +
			"participants, each of which removes its own",
		Alive: "the Lease exeunt-system/exeunt-teardown; its holder is the Deployment exeunt-system/alive-controller or a person's " +
			"exeunt teardown",
		Force: "Alive goes, and nothing says that everything was deleted: disks and load balancers stay in the cloud and are paid " +
			"for; the freeze stays",
		Source: "https://github.com/exeunt-io/exeunt/blob/main/pkg/alive/types.go",
	},
	{
		Name: "Karpenter", Finalizers: []string{"karpenter.k8s.aws/termination"},
		Controller: karpenter,
		When:       "no NodeClaim uses the EC2NodeClass, and its instance profile and launch templates are deleted",
		Alive:      karpenterAlive,
		Force:      "instance profiles and launch templates stay in AWS",
		Source:     "https://github.com/aws/karpenter-provider-aws/blob/main/pkg/apis/v1/labels.go",
	},
	{
		Name: "GKE Ingress", Finalizers: []string{"networking.gke.io/ingress-finalizer",
			"networking.gke.io/ingress-finalizer-V2"}, Kinds: []string{"Ingress"},
		Controller: gkeIngress,
		When:       "the load balancer of the Ingress is deleted",
		Alive:      gkeIngressAlive,
		Force:      "the load balancer stays in Google Cloud and is paid for",
		Source:     gkeIngressSource,
	},
	{
		Name: "GKE Service", Finalizers: []string{"gke.networking.io/l4-*"}, Kinds: []string{"Service"},
		Controller: gkeServices,
		When:       "the network load balancer of the Service is deleted",
		Alive:      "GKE runs the controller outside of the cluster",
		Force:      "the load balancer stays in Google Cloud and is paid for",
		Source:     gkeIngressSource,
	},
	{
		Name: "GKE NEG", Finalizers: []string{"networking.gke.io/neg-finalizer"},
		Kinds:      []string{"ServiceNetworkEndpointGroup.networking.gke.io"},
		Controller: gkeServices,
		When:       "the network endpoint group is deleted; a backend service that uses the group keeps it",
		Alive:      "GKE runs the controller outside of the cluster",
		Force:      "the network endpoint group stays in Google Cloud",
		Source:     gkeIngressSource,
	},
	{
		Name: "Config Connector", Finalizers: []string{"cnrm.cloud.google.com/finalizer"},
		Controller: Controller{
			Name:       "cnrm-controller-manager",
			Labels:     map[string]string{"cnrm.cloud.google.com/component": "cnrm-controller-manager"},
			Namespaces: []string{"cnrm-system"}, ErrorReasons: []string{"DeleteFailed"},
		},
		When:   "the resource is deleted in Google Cloud, or abandoned by its annotation",
		Alive:  "the StatefulSets cnrm-system/cnrm-controller-manager",
		Force:  "the resource stays in Google Cloud and is paid for",
		Source: "https://github.com/GoogleCloudPlatform/k8s-config-connector/blob/master/operator/pkg/k8s/constants.go",
	},
	{
		Name: "Config Connector", Finalizers: []string{"cnrm.cloud.google.com/deletion-defender"},
		Controller: Controller{Name: "cnrm-deletion-defender",
			Labels:     map[string]string{"cnrm.cloud.google.com/component": "cnrm-deletion-defender"},
			Namespaces: []string{"cnrm-system"}},
		When:   "the definition of the kind is not being deleted itself",
		Alive:  "the StatefulSet cnrm-system/cnrm-deletion-defender",
		Force:  "an uninstallation may delete the resource in Google Cloud",
		Source: "https://github.com/GoogleCloudPlatform/k8s-config-connector/blob/master/pkg/k8s/constants.go",
	},
	{
		Name: "Config Connector", Finalizers: []string{"configconnector.cnrm.cloud.google.com/finalizer"},
		Kinds: []string{"ConfigConnector.core.cnrm.cloud.google.com",
			"ConfigConnectorContext.core.cnrm.cloud.google.com"},
		Controller: Controller{Name: "configconnector-operator", Namespaces: []string{"configconnector-operator-system"}},
		When:       "the operator has uninstalled Config Connector; resources that it manages keep it",
		Alive:      "the StatefulSet configconnector-operator-system/configconnector-operator",
		Force:      "parts of Config Connector stay installed",
		Source:     "https://github.com/GoogleCloudPlatform/k8s-config-connector/blob/master/operator/pkg/k8s/constants.go",
	},
	{
		Name: "Azure Service Operator", Finalizers: []string{"serviceoperator.azure.com/finalizer"},
		Controller: Controller{
			Name: "azureserviceoperator-controller-manager", Images: []string{"azureserviceoperator"},
			Leases:     []string{"controllers-leader-election-azinfra-generated"},
			Namespaces: []string{"azureserviceoperator-system"},
		},
		When:   "the resource is deleted in Azure, or its reconcile policy keeps the resource",
		Alive:  "the Deployment azureserviceoperator-controller-manager and its Lease controllers-leader-election-azinfra-generated",
		Force:  "the resource stays in Azure and is paid for",
		Source: "https://github.com/Azure/azure-service-operator/blob/main/v2/internal/reconcilers/common.go",
	},
}

const (
	awsLoadBalancerSource = "https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/main/pkg/shared_constants/finalizers.go"
	awsLoadBalancerAlive  = "the Deployment kube-system/aws-load-balancer-controller and its Lease aws-load-balancer-controller-leader; in EKS Auto Mode it runs outside of the cluster"
	karpenterAlive        = "the Deployment karpenter and its Lease karpenter-leader-election; in EKS Auto Mode and AKS node auto-provisioning it runs outside of the cluster"
	gkeIngressSource      = "https://github.com/kubernetes/ingress-gce/blob/master/pkg/utils/common/finalizer.go"
	gkeIngressAlive       = "the Lease kube-system/ingress-gce-lock; GKE runs the controller outside of the cluster"
)

var awsLoadBalancer = Controller{
	Name: "aws-load-balancer-controller", Images: []string{"aws-load-balancer-controller"},
	Labels: map[string]string{"app.kubernetes.io/name": "aws-load-balancer-controller"},
	Leases: []string{"aws-load-balancer-controller-leader"}, Namespaces: []string{"kube-system"},
	Needs:          []string{"targetgroupbindings.elbv2.k8s.aws", "aws-load-balancer-webhook"},
	EventSources:   []string{"ingress", "service", "targetGroupBinding"},
	ErrorReasons:   []string{"FailedDeployModel", "FailedCleanup"},
	SuccessReasons: []string{"SuccessfullyReconciled"},
}

// eksAutoMode sets the same finalizers, and runs outside of the cluster.
var eksAutoMode = Controller{Name: "EKS Auto Mode", ControlPlane: true, RunsIn: "AWS, outside of the cluster",
	Needs: []string{"ingressclassparams.eks.amazonaws.com"}}

var nodeTerminator = Controller{
	Name: "node-terminator", Images: []string{"node-terminator"}, Commands: []string{"node-terminator"},
	Labels: map[string]string{"app.kubernetes.io/name": "node-terminator", "app.kubernetes.io/part-of": "exeunt"},
	Leases: []string{"node-terminator"}, Namespaces: []string{"exeunt-system"},
}

// teardownRunner is alive-controller, or the command of a person elsewhere, which holds the same Lease.
var teardownRunner = Controller{
	Name: "alive-controller", Images: []string{"alive-controller"}, Commands: []string{"alive-controller"},
	Labels: map[string]string{"app.kubernetes.io/name": "alive-controller", "app.kubernetes.io/part-of": "exeunt"},
	Leases: []string{"exeunt-teardown"}, Namespaces: []string{"exeunt-system"},
	RunsIn: "the terminal of whoever tears the cluster down",
}

var karpenter = Controller{
	Name: "karpenter", Images: []string{"karpenter/controller"},
	Labels: map[string]string{"app.kubernetes.io/name": "karpenter"},
	Leases: []string{"karpenter-leader-election"}, Namespaces: []string{"kube-system", "karpenter"},
}

var (
	eksAutoNodes = Controller{Name: "EKS Auto Mode", ControlPlane: true, RunsIn: "AWS, outside of the cluster",
		Needs: []string{"nodeclasses.eks.amazonaws.com"}}
	aksNodes = Controller{Name: "AKS node auto-provisioning", ControlPlane: true,
		RunsIn: "Azure, outside of the cluster", Needs: []string{"aksnodeclasses.karpenter.azure.com"}}
)

// gkeIngress has a Lease for Ingresses alone; it works on Services and endpoint groups without.
var (
	gkeIngress = Controller{
		Name: "ingress-gce", Images: []string{"ingress-gce-glbc-amd64"}, Leases: []string{"ingress-gce-lock"},
		Namespaces: []string{"kube-system"}, ControlPlane: true, RunsIn: "Google Cloud, outside of the cluster",
	}
	gkeServices = Controller{Name: "ingress-gce", Images: []string{"ingress-gce-glbc-amd64"},
		Namespaces: []string{"kube-system"}, ControlPlane: true, RunsIn: "Google Cloud, outside of the cluster"}
)
