package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
)

// Refusals returns why the API server refuses the writes that end the object's deletion:
// admission, or an invalid object.
func Refusals(_ context.Context, _ chain.Explorer, _ *unstructured.Unstructured) []blocker.Blocker {
	return nil
}
