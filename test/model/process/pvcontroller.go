package process

import (
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// PVController builds the pv-controller, without in-tree plugins.
func PVController(env *Env) (*Program, error) { return pvController(env) }

func pvController(env *Env, plugins ...intree.Plugin) (*Program, error) {
	caches, err := pvcache.Of(&pvcache.Caches{
		Claims: env.Informers["persistentvolumeclaims"], Volumes: env.Informers["persistentvolumes"],
		Classes: env.Informers["storageclasses"], Pods: env.Informers["pods"],
	})
	if err != nil {
		return nil, err
	}
	controllers, err := pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(env.Client), Caches: caches, Reporter: controller.NewReporter(&record.FakeRecorder{}),
		Plugins: intree.NewSet(migration.New(), plugins...), Operations: metrics.NewOperations(), Dynamic: true,
		Honor: env.Honor,
	})
	if err != nil {
		return nil, err
	}
	return &Program{
		Loops: stepped(controllers.Loops()), Start: controllers.Watch, Memory: []any{controllers},
	}, nil
}

func stepped(loops []*controller.Loop) []*controller.Stepped {
	steps := make([]*controller.Stepped, len(loops))
	for i, loop := range loops {
		steps[i] = loop.Step()
	}
	return steps
}
