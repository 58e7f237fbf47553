package provision

import (
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// parameterPrefix starts the class parameters that are meant for the provisioner
// and not for the driver.
const parameterPrefix = "csi.storage.k8s.io/"

// fsTypeParameter names the file system. Its older form, "fstype" in whatever case,
// is for the driver as well.
const (
	fsTypeParameter    = parameterPrefix + "fstype"
	oldFSTypeParameter = "fstype"
)

// Parameters with the names of claim and volume, for [Settings.ExtraMetadata].
const (
	claimNameParameter      = parameterPrefix + "pvc/name"
	claimNamespaceParameter = parameterPrefix + "pvc/namespace"
	volumeNameParameter     = parameterPrefix + "pv/name"
)

// parametersOf splits the parameters of a class into those for the driver and the
// file system.
func parametersOf(class *storagev1.StorageClass) (parameters map[string]string, fsType string, err error) {
	parameters = map[string]string{}
	named := ""
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		prefixed := strings.HasPrefix(key, parameterPrefix)
		if prefixed && !forProvisioner(key) {
			return nil, "", refuse("storage class %q has the unknown parameter key %q in the reserved namespace %s, which is not for the driver", class.Name, key, parameterPrefix)
		}
		if !prefixed {
			parameters[key] = class.Parameters[key]
		}
		if key != fsTypeParameter && !strings.EqualFold(key, oldFSTypeParameter) {
			continue
		}
		if named != "" {
			return nil, "", refuse("fstype specified in parameters with both keys of storage class %q, %q and %q", class.Name,
				named, key)
		}
		named, fsType = key, class.Parameters[key]
	}
	return parameters, fsType, nil
}

// forProvisioner reports whether the provisioner itself reads the parameter.
func forProvisioner(key string) bool {
	if key == fsTypeParameter {
		return true
	}
	return slices.ContainsFunc(append(secretUses(), defaultSecret), func(use secretUse) bool {
		return key == use.nameKey() || key == use.namespaceKey()
	})
}
