package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// signalContext returns a context with a logger of the name, which ends on SIGINT or
// SIGTERM. A second signal ends the process at once.
func signalContext(name string) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return klog.NewContext(ctx, klog.Background().WithName(name)), stop
}
