package sandbox

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestForegroundProgramEndsWithItsContext(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"success after SIGTERM is no error": {`trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`, ""},
		"failure after SIGTERM is":          {`trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`, "run sh: exit status 3"},
		"failure by itself is":              {`echo ready; exit 4`, "run sh: exit status 4"},
		"success by itself is no error":     {`echo ready`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, in := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- RunForeground(ctx, in, io.Discard, "/bin/sh", "-c", tc.script)
				_ = in.Close()
			}()
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(tc.script, "trap") {
				cancel()
			}
			err := <-ended
			if got := errorText(err); got != tc.want {
				t.Errorf("RunForeground = %q, want %q", got, tc.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
