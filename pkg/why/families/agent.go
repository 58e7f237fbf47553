package families

import (
	"strings"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Agent says what the name of a field manager is worth.
type Agent int

const (
	// Program: the name may be the name of the program that set the finalizer.
	Program Agent = iota
	// Default: the name is the default of a library or a build, and many programs share it.
	Default
	// ByHand: a user set the finalizer with kubectl or a console.
	ByHand
	// Restore: a backup was restored, or the object is older than its record.
	Restore
	// Deployer: a deployment tool applied a manifest that has the finalizer.
	Deployer
)

// String returns the name of the value.
func (a Agent) String() string {
	return enum.Name(a, "program", "default", "byHand", "restore", "deployer")
}

// note completes the sentence about a manager, "" if its name is worth something.
func (a Agent) note() string {
	switch a {
	case Default:
		return "many programs have this name"
	case ByHand:
		return "set by hand or restored"
	case Restore:
		return "restored from a backup, or older than its record"
	case Deployer:
		return "a deployment tool that applies manifests"
	default:
		return ""
	}
}

// agents are names of managers, in lower case, that do not name the program that works
// with the finalizer.
var agents = map[string]Agent{
	"": Default, "manager": Default, "operator": Default, "controller": Default, "controller-manager": Default,
	"main": Default, "app": Default, "server": Default, "unknown": Default, "__debug_bin": Default,
	"go-http-client": Default, "node-fetch": Default, "axios": Default, "openapi-generator": Default,
	"swagger-codegen": Default, "python-requests": Default, "python-urllib": Default, "python": Default,
	"python3":   Default,
	"pykube-ng": Default, "kopf": Default, "kubernetes-client": Default, "fabric8-kubernetes-client": Default,
	"okhttp": Default, "java": Default, "kube-rs": Default, "rust": Default,
	"curl":    Default,
	"kubectl": ByHand, "oc": ByHand, "k9s": ByHand, "lens": ByHand, "openlens": ByHand, "freelens": ByHand,
	"headlamp": ByHand, "mozilla": ByHand, "dashboard": ByHand, "kubernetes-dashboard": ByHand,
	"velero": Restore, "velero-server": Restore, "before-first-apply": Restore,
	"argocd-controller": Deployer, "argocd-application-controller": Deployer, "helm": Deployer,
	"helm-controller":      Deployer,
	"kustomize-controller": Deployer, "terraform": Deployer, "hashicorp": Deployer,
	"terraform-provider-kubernetes": Deployer,
	"pulumi":                        Deployer, "pulumi-kubernetes": Deployer, "ansible": Deployer, "fleetagent": Deployer,
	"kapp":            Deployer,
	"kapp-controller": Deployer, "skaffold": Deployer, "tilt": Deployer, "flux": Deployer,
	"flux-client-side-apply": Deployer,
}

// Agent returns what the name of the manager is worth.
func (m Manager) Agent() Agent {
	name := strings.ToLower(m.Name)
	if agent, known := agents[name]; known {
		return agent
	}
	if strings.HasPrefix(name, "kubectl-") || strings.HasPrefix(name, "oc-") {
		return ByHand
	}
	if strings.HasPrefix(name, "__debug_bin") || strings.HasSuffix(name, ".test") {
		return Default
	}
	return Program
}
