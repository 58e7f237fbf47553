// Command csimock serves an in-memory CSI driver on a unix socket, for tests, demos and CI.
// The driver is in pkg/csimock.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "csimock:", err)
		os.Exit(1)
	}
}
