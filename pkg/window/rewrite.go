package window

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// IsOurs reports whether the API server of the version has graceful deletion of custom resources, unless its gate is off.
func IsOurs(version string) bool { return strings.Contains(version, "+exeunt.") }

// IsBuiltIn reports whether API servers serve the group without a CustomResourceDefinition.
func IsBuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// Respelled returns the annotation of an object in its grace period in another spelling of UTC, which means the same,
// and whether the object is served as in etcd, with the deadline in the annotation. The API server with graceful
// deletion serves it in the fields.
func Respelled(object metav1.Object) (string, bool) {
	at, annotation := object.GetDeletionTimestamp(), object.GetAnnotations()[deadline.Annotation]
	if at == nil {
		return "", false
	}
	read := deadline.Read(at.Time, annotation)
	found, ok := deadline.Parse(annotation)
	if field := object.GetDeletionGracePeriodSeconds(); field != nil && *field > 0 {
		return "", false
	}
	if !ok || read.Kind() != deadline.Graceful || !read.Deadline(0).After(at.Time) {
		return "", false
	}
	text := strings.ReplaceAll(found.String(), "Z", "+00:00")
	return text, true
}
