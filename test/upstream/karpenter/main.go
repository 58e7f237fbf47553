// Karpenter is the real one, of the version in go.mod, with all its controllers, to compare node-terminator with and to
// run beside it. Only what talks to a cloud is ours: its machines are those of test/cloudmock. The argument crds
// prints Karpenter's CustomResourceDefinitions.
package main

import (
	"os"

	"github.com/samber/lo"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "crds" {
		for _, definition := range [][]byte{apis.NodePoolCRD, apis.NodeClaimCRD, apis.NodeOverlayCRD,
			apis.CapacityBufferCRD, kwokapis.KWOKNodeClassCRD} {
			lo.Must(os.Stdout.Write(append(definition, "\n---\n"...)))
		}
		return
	}
	ctx, op := operator.NewOperator()
	cloud := newCloud(ctx, op.GetClient(), os.Getenv("CLOUDMOCK_SOCKET"))
	repairs := lo.Must(health.NewRepairPolicyMatcher(ctx, cloud))
	cluster := state.NewCluster(op.Clock, op.GetClient(), cloud, state.WithRepairPolicyMatcher(repairs))
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder,
		cloud, cloud, cluster, op.InstanceTypeStore, op.PredictionStore)...).Start(ctx)
}
