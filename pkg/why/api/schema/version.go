package schema

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

// beKubernetes makes the packages of the API server validate as Kubernetes does. They take the
// version of our program for that of Kubernetes: at v0.1 they know no ratcheting, and call
// objects invalid to which the API server takes writes.
var beKubernetes = sync.OnceValue(func() error {
	kubernetes := version.MustParse(baseversion.DefaultKubeBinaryVersion)
	effective := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	mutable, settable := effective.(basecompatibility.MutableEffectiveVersion)
	if !settable {
		return fmt.Errorf("set version of validation to %s: it cannot be set", kubernetes)
	}
	mutable.SetEmulationVersion(kubernetes)
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(kubernetes); err != nil {
		return fmt.Errorf("set version of validation to %s: %w", kubernetes, err)
	}
	return nil
})
