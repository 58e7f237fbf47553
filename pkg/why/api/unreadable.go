package api

import (
	"context"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// Unreadable returns why an object cannot be read, if the answer of the API server proves
// that it exists: its stored bytes are damaged, or its conversion fails. It returns nil for
// any other error, such as a missing right.
func Unreadable(ctx context.Context, e chain.Explorer, ref cluster.Ref, err error) []blocker.Blocker {
	if failed := conversionFailure(ctx, e, ref.Resource.GroupResource(), err); failed != nil {
		return failed
	}
	if refusal.Classify(statusOf(err)) != refusal.Damaged {
		return nil
	}
	resource := ref.Resource.GroupResource().String()
	return []blocker.Blocker{{
		Object: nameOf(ref), Reason: blocker.ObjectUnreadable, Verdict: blocker.Stuck, Holder: "the API server",
		Evidence: []blocker.Evidence{evidence(blocker.FromField, "the API server answers: %s", oneLine(err))},
		Next: cluster.Steps("put the key that encrypted the object back into the encryption configuration of all API servers, then try again",
			get(e.Commands(), ref.Namespace, resource, ref.Name)) + "\n" +
			cluster.LastResort("the object is lost, and whatever it protects stays behind. This needs the gate AllowUnsafeMalformedObjectDeletion",
				forceDeletion+" | "+e.Commands().Kubectl("", "delete", "--raw="+path(ref), "-f", "-")),
	}}
}

// forceDeletion prints the options that delete an object without reading it.
const forceDeletion = `echo '{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}'`

// path returns the path of the object in the API.
func path(ref cluster.Ref) string {
	root := "/apis/" + ref.Resource.Group
	if ref.Resource.Group == "" {
		root = "/api"
	}
	root += "/" + ref.Resource.Version
	if ref.Namespace != "" {
		root += "/namespaces/" + ref.Namespace
	}
	return root + "/" + ref.Resource.Resource + "/" + ref.Name
}
