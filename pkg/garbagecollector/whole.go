package garbagecollector

import (
	"context"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// readWhole reads a cluster-scoped object as JSON. Its error is that of the API server, which
// names an absent object; Raw alone returns an error without names.
func (c *Collector) readWhole(ctx context.Context, kind *graph.Kind, name string) ([]byte, error) {
	result := c.REST.Get().AbsPath("/apis", kind.Group, kind.Version, kind.Resource, name).SetHeader("Accept", "application/json").Do(ctx)
	body, err := result.Raw()
	if err != nil {
		err = result.Error()
	}
	return body, err
}
