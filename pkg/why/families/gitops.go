package families

// gitops are finalizers of programs that deploy from Git, of workflows, and of programs that
// make infrastructure from custom resources.
var gitops = []Family{
	{
		Name: "Argo CD", Kinds: []string{"Application.argoproj.io", "AppProject.argoproj.io"},
		Finalizers: []string{
			"resources-finalizer.argocd.argoproj.io", "resources-finalizer.argocd.argoproj.io/foreground",
			"resources-finalizer.argocd.argoproj.io/background",
			"pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup",
			"post-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup",
			"post-delete-finalizer.argoproj.io/cleanup",
		},
		Controller: argoCD("argocd-application-controller"),
		When:       "the resources of the application are deleted and its hooks have run; a project waits for its applications",
		Alive:      "the StatefulSet argocd/argocd-application-controller",
		Force:      "the resources of the application stay in the cluster, and no application manages them",
		Source:     "https://github.com/argoproj/argo-cd/blob/master/pkg/apis/application/v1alpha1/application_defaults.go",
	},
	{
		Name: "Argo CD", Kinds: []string{"ApplicationSet.argoproj.io"},
		Finalizers: []string{"resources-finalizer.argocd.argoproj.io"},
		Controller: argoCD("argocd-applicationset-controller"),
		When:       "the applications of the set no longer name the set as their owner",
		Alive:      "the Deployment argocd/argocd-applicationset-controller",
		Force:      "applications of the set are deleted with it, although they were to stay",
		Source:     "https://github.com/argoproj/argo-cd/blob/master/pkg/apis/application/v1alpha1/application_defaults.go",
	},
	{
		Name: "Argo Workflows", Finalizers: []string{"workflows.argoproj.io/artifact-gc"},
		Kinds: []string{"Workflow.argoproj.io"},
		Controller: Controller{
			Name: "workflow-controller", Images: []string{"workflow-controller"},
			Labels:     map[string]string{"app": "workflow-controller"},
			Namespaces: []string{"argo"},
		},
		When:   "the artifacts of the workflow are deleted from object storage",
		Alive:  "the Deployment argo/workflow-controller",
		Force:  "the artifacts stay in object storage",
		Source: "https://github.com/argoproj/argo-workflows/blob/main/workflow/artifacts/common/common.go",
	},
	{
		Name: "Argo Events", Finalizers: []string{"eventbus-controller"}, Kinds: []string{"EventBus.argoproj.io"},
		Controller: argoEvents,
		When:       "no event source and no sensor uses the event bus, and its workload is removed",
		Alive:      "the Deployment argo-events/controller-manager",
		Force:      "event sources and sensors lose their event bus",
		Source:     "https://github.com/argoproj/argo-events/blob/master/pkg/reconciler/eventbus/controller.go",
	},
	{
		Name: "Argo Events", Finalizers: []string{"eventsource-controller"}, Kinds: []string{"EventSource.argoproj.io"},
		Controller: argoEvents,
		When:       "the controller has seen the deletion",
		Alive:      "the Deployment argo-events/controller-manager",
		Force:      "nothing: the garbage collector removes the workload of the event source",
		Source:     "https://github.com/argoproj/argo-events/blob/master/pkg/reconciler/eventsource/controller.go",
	},
	{
		Name: "Argo Events", Finalizers: []string{"sensor-controller"}, Kinds: []string{"Sensor.argoproj.io"},
		Controller: argoEvents,
		When:       "the controller has seen the deletion",
		Alive:      "the Deployment argo-events/controller-manager",
		Force:      "nothing: the garbage collector removes the workload of the sensor",
		Source:     "https://github.com/argoproj/argo-events/blob/master/pkg/reconciler/sensor/controller.go",
	},
	flux("kustomize-controller", "the objects that the Kustomization applied are pruned, if it prunes",
		"the objects that the Kustomization applied stay in the cluster", "Kustomization.kustomize.toolkit.fluxcd.io"),
	flux("helm-controller", "the Helm release is uninstalled",
		"the Helm release stays installed", "HelmRelease.helm.toolkit.fluxcd.io"),
	flux("source-controller", "the artifacts of the source are deleted from the disk of the controller",
		"artifacts stay on the disk of the controller until it restarts", "GitRepository.source.toolkit.fluxcd.io",
		"HelmRepository.source.toolkit.fluxcd.io", "HelmChart.source.toolkit.fluxcd.io", "Bucket.source.toolkit.fluxcd.io",
		"OCIRepository.source.toolkit.fluxcd.io"),
	flux("notification-controller", "the controller has seen the deletion",
		"nothing: the object has no state of its own", "Alert.notification.toolkit.fluxcd.io",
		"Provider.notification.toolkit.fluxcd.io",
		"Receiver.notification.toolkit.fluxcd.io"),
	flux("image-reflector-controller", "the controller has seen the deletion",
		"nothing: the tags in the database of the controller are refreshed", "ImageRepository.image.toolkit.fluxcd.io",
		"ImagePolicy.image.toolkit.fluxcd.io"),
	flux("image-automation-controller", "the controller has seen the deletion",
		"nothing: the object has no state of its own", "ImageUpdateAutomation.image.toolkit.fluxcd.io"),
	{
		Name: "Tofu controller", Finalizers: []string{"finalizers.tf.contrib.fluxcd.io"},
		Kinds: []string{"Terraform.infra.contrib.fluxcd.io"},
		Controller: Controller{Name: "tofu-controller", Images: []string{"tofu-controller", "tf-controller"},
			Namespaces: []string{"flux-system"}},
		When:   "the plan is destroyed, if the object says destroyResourcesOnDeletion",
		Alive:  "the Deployment flux-system/tofu-controller",
		Force:  "the infrastructure stays, and its state is in a Secret that nobody works with",
		Source: "https://github.com/flux-iac/tofu-controller/blob/main/api/v1alpha2/terraform_types.go",
	},
	{
		Name: "Crossplane", Finalizers: []string{"finalizer.managedresource.crossplane.io"},
		Controller: Controller{Name: "the Crossplane provider of the resource", Namespaces: []string{"crossplane-system"}},
		When:       "the provider has deleted the resource of the cloud, or the deletion policy is Orphan",
		Alive:      "kubectl get providers.pkg.crossplane.io, and the pods of the provider",
		Force:      "the resource stays in the cloud and is paid for",
		Source:     "https://github.com/crossplane/crossplane-runtime/blob/main/pkg/reconciler/managed/reconciler.go",
	},
	{
		Name: "Crossplane", Finalizers: []string{"in-use.crossplane.io"},
		Controller: Controller{Name: "the Crossplane provider of the ProviderConfig",
			Namespaces: []string{"crossplane-system"}},
		When:   "no managed resource uses the ProviderConfig",
		Alive:  "kubectl get providers.pkg.crossplane.io, and the pods of the provider",
		Force:  "managed resources lose their credentials, and can no longer be deleted",
		Source: "https://github.com/crossplane/crossplane-runtime/blob/main/pkg/reconciler/providerconfig/reconciler.go",
	},
	{
		Name: "Crossplane", Finalizers: []string{"composite.apiextensions.crossplane.io"},
		Controller: crossplane,
		When:       "the composed resources are being deleted",
		Alive:      crossplaneAlive,
		Force:      "composed resources, and what they stand for in the cloud, stay behind",
		Source:     "https://github.com/crossplane/crossplane/blob/main/internal/controller/apiextensions/composite/reconciler.go",
	},
	{
		Name: "Crossplane", Finalizers: []string{"finalizer.apiextensions.crossplane.io"},
		Controller: crossplane,
		When:       "the composite resource of the claim is gone",
		Alive:      crossplaneAlive,
		Force:      "the composite resource, and what it stands for in the cloud, stays behind",
		Source:     "https://github.com/crossplane/crossplane/blob/main/internal/controller/apiextensions/claim/reconciler.go",
	},
	{
		Name: "Crossplane", Kinds: []string{"CompositeResourceDefinition.apiextensions.crossplane.io"},
		Finalizers: []string{"defined.apiextensions.crossplane.io", "offered.apiextensions.crossplane.io"},
		Controller: crossplane,
		When:       "all composite resources and claims of the definition are gone",
		Alive:      crossplaneAlive,
		Force:      "composite resources and claims stay without their definition",
		Source:     "https://github.com/crossplane/crossplane/blob/main/internal/controller/apiextensions/offered/reconciler.go",
	},
	{
		Name: "KubeVela", Finalizers: []string{"app.oam.dev/resource-tracker-finalizer", "app.oam.dev/orphan-resource"},
		Kinds:      []string{"Application.core.oam.dev"},
		Controller: Controller{Name: "vela-core", Images: []string{"vela-core"}, Namespaces: []string{"vela-system"}},
		When:       "the resources of the application are deleted, or released if they are to stay",
		Alive:      "the Deployment vela-system/kubevela-vela-core",
		Force:      "the resources of the application stay in the clusters",
		Source:     "https://github.com/kubevela/kubevela/blob/master/pkg/oam/labels.go",
	},
	{
		Name: "Pulumi", Finalizers: []string{"finalizer.stack.pulumi.com"}, Kinds: []string{"Stack.pulumi.com"},
		Controller: Controller{Name: "pulumi-kubernetes-operator", Images: []string{"pulumi-kubernetes-operator"},
			Namespaces: []string{"pulumi-kubernetes-operator"}},
		When:   "the stack is destroyed, if the object says destroyOnFinalize",
		Alive:  "the Deployment pulumi-kubernetes-operator",
		Force:  "the infrastructure of the stack stays and is paid for",
		Source: "https://github.com/pulumi/pulumi-kubernetes-operator/blob/master/operator/internal/controller/pulumi/stack_controller.go",
	},
	{
		Name: "HCP Terraform", Finalizers: []string{"*.app.terraform.io/finalizer", "finalizer.workspace.app.terraform.io"},
		Controller: Controller{Name: "hcp-terraform-operator", Images: []string{"hcp-terraform-operator",
			"terraform-cloud-operator"}},
		When:   "the workspace, project or agent pool is deleted in HCP Terraform, or kept by its deletion policy",
		Alive:  "the Deployment of hcp-terraform-operator",
		Force:  "the workspace and its infrastructure stay and are paid for",
		Source: "https://github.com/hashicorp/hcp-terraform-operator/blob/main/internal/controller/consts.go",
	},
}

const crossplaneAlive = "the Deployment crossplane-system/crossplane and its Lease crossplane-leader-election-core"

var crossplane = Controller{
	Name: "crossplane", Images: []string{"crossplane/crossplane"}, Labels: map[string]string{"app": "crossplane"},
	Leases: []string{"crossplane-leader-election-core"}, Namespaces: []string{"crossplane-system"},
	Needs: []string{"compositions.apiextensions.crossplane.io"},
}

var argoEvents = Controller{Name: "argo-events", Images: []string{"argo-events"}, Namespaces: []string{"argo-events"}}

// argoCD returns a component of Argo CD; all have one image, so labels and commands tell
// them apart.
func argoCD(component string) Controller {
	return Controller{
		Name: component, Commands: []string{component}, Labels: map[string]string{"app.kubernetes.io/name": component},
		Namespaces: []string{"argocd"},
	}
}

// flux returns the row of a controller of Flux: all set the same finalizer on kinds of their own.
func flux(controller, when, force string, kinds ...string) Family {
	return Family{
		Name: "Flux", Finalizers: []string{"finalizers.fluxcd.io"}, Kinds: kinds,
		Controller: Controller{
			Name: controller, Images: []string{controller}, Labels: map[string]string{"app": controller},
			Leases: []string{controller + "-leader-election"}, Namespaces: []string{"flux-system"},
		},
		When:   when,
		Alive:  "the Deployment flux-system/" + controller + " and its Lease " + controller + "-leader-election",
		Force:  force,
		Source: "https://github.com/fluxcd/" + controller + "/blob/main/main.go",
	}
}
