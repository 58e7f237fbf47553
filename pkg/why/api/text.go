package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// evidence returns one fact.
func evidence(source blocker.Source, format string, values ...any) blocker.Evidence {
	return blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)}
}

// askedAt returns when the deletion was requested: the deletion timestamp is the end of the
// grace period.
func askedAt(object metav1.Object) string {
	asked := object.GetDeletionTimestamp()
	if asked == nil {
		return ""
	}
	grace := time.Duration(0)
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	return blocker.Time(asked.Add(-grace))
}

// resourceWord returns how kubectl names the kind of the object, such as widgets.example.com.
func resourceWord(e chain.Explorer, object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	if mapping, err := e.Reader().Mapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		return mapping.Resource.GroupResource().String()
	}
	return strings.TrimSuffix(strings.ToLower(gvk.Kind)+"."+gvk.Group, ".")
}

// get returns a command that shows the object.
func get(commands cluster.Commands, namespace, resource, name string, more ...string) string {
	return commands.Kubectl(namespace, append([]string{"get", resource, name}, more...)...)
}

// shortened returns the words in one line, at most limit of them.
func shortened(words []string, limit int) string {
	if len(words) > limit {
		words = append(slices.Clone(words[:limit]), fmt.Sprintf("and %d more", len(words)-limit))
	}
	return strings.Join(words, ", ")
}
