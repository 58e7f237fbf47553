package garbagecollector

// Keep in go.mod what upstream's tests import.
import (
	_ "k8s.io/apiextensions-apiserver/test/integration/fixtures"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	_ "k8s.io/kubernetes/test/integration"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/kubernetes/test/utils/ktesting"
)
