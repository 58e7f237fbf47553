package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// SignalContext returns a context that carries a logger of the name and ends on
// SIGINT or SIGTERM. The function returned gives the signals back: a second one
// then stops the process at once.
func SignalContext(name string) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return klog.NewContext(ctx, klog.Background().WithName(name)), stop
}
