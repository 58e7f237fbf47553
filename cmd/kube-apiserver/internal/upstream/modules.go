//go:build modules

package upstream

// Keep in go.mod what upstream's tests import. No build sets the tag: most of Kubernetes would be linked.
import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "k8s.io/apiextensions-apiserver/test/integration/conversion"
	_ "k8s.io/apiextensions-apiserver/test/integration/fixtures"
	_ "k8s.io/apiextensions-apiserver/test/integration/storage"
	_ "k8s.io/klog/v2/ktesting"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	_ "k8s.io/kubernetes/pkg/controller/garbagecollector"
	_ "k8s.io/kubernetes/test/integration"
	_ "k8s.io/kubernetes/test/integration/etcd"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/kubernetes/test/utils/ktesting"
)
