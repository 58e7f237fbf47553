package e2e

import (
	"context"
	"errors"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

func (c *cluster) startUpstreamLoops(context.Context, sandbox.Controller) (*sandbox.Process, error) {
	return nil, errors.New("x")
}

func (c *cluster) startUpstreamSidecar(context.Context, *sandbox.Driver, sandbox.Controller) (*sandbox.Process, error) {
	return nil, errors.New("x")
}
