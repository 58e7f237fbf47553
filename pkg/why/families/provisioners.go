package families

import "strings"

// provisionerImages are the images of widely used provisioners that are no CSI drivers, by the name
// of the provisioner: these programs have the name built in. The others are told by their settings.
var provisionerImages = map[string]Controller{
	"rancher.io/local-path": { // https://github.com/rancher/local-path-provisioner/blob/master/main.go
		Images: []string{"local-path-provisioner"}, Commands: []string{"local-path-provisioner"}, Namespaces: []string{"local-path-storage", "kube-system"},
	},
	"openebs.io/local": { // https://github.com/openebs/dynamic-localpv-provisioner/blob/develop/cmd/provisioner-localpv/app/provisioner.go
		Images: []string{"provisioner-localpv"}, Namespaces: []string{"openebs"},
	},
	"microk8s.io/hostpath": { // https://github.com/canonical/hostpath-provisioner/blob/master/hostpath-provisioner.go
		Images: []string{"hostpath-provisioner"}, Namespaces: []string{"kube-system"},
	},
	"k8s.io/minikube-hostpath": { // https://github.com/kubernetes/minikube/blob/master/pkg/storage/storage_provisioner.go
		Images: []string{"storage-provisioner"}, Namespaces: []string{"kube-system"},
	},
}

// Provisioner returns how to recognize the provisioner of the name, as the annotation
// pv.kubernetes.io/provisioned-by has it, that is no CSI driver. sig-storage-lib-external-provisioner
// names its Lease and the component of its events for the provisioner.
func Provisioner(name string) Controller {
	c := provisionerImages[name]
	c.Name = "the provisioner " + name
	c.Provisioner = name
	c.Leases = []string{strings.ReplaceAll(name, "/", "-"), SanitizedDriver(name)}
	c.EventSources, c.ErrorReasons = []string{name + "_*"}, []string{"VolumeFailedDelete"}
	return c
}

// IsProvisioner reports whether the name is that of a program beside Kubernetes, not of a plugin in it.
func IsProvisioner(name string) bool {
	return name != "" && !strings.HasPrefix(name, "kubernetes.io/")
}
