package upstream

import (
	"context"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// Controllers builds the three loops of kube-controller-manager v1.36 that pv-controller
// replaces. The gate is off as it was before KEP-2644 if [process.Env] does not honor the
// reclaim policy; the real program has no gate any more.
//
// The binder has one worker per queue: the model reconciles one key of each loop at a time,
// except those of binder-operations.
func Controllers(env *process.Env) (*process.Program, error) {
	b, p := newBinder(env), newProtection(env)
	return &process.Program{
		Loops: []*controller.Stepped{
			b.claimLoop.Step(), b.volumeLoop.Step(), b.operationLoop.Step(),
			p.volumeLoop.Step(), p.claimLoop.Step(),
		},
		Start: func(ctx context.Context) error {
			b.fillStores()
			return controller.RegisterHandlers(ctx, append(b.handlers(), p.handlers()...)...)
		},
		Memory: []any{&b.volumes.objects, &b.claims.objects, &b.operations.pending},
	}, nil
}
