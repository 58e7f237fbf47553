package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// hideInLogs returns a context whose logger hides the values of the secrets: a response of
// the driver may contain them. Upstream's library hides the secrets of requests.
func hideInLogs(ctx context.Context, secrets map[string]string) context.Context {
	logger := klog.FromContext(ctx)
	if len(secrets) == 0 || logger.GetSink() == nil {
		return ctx
	}
	return klog.NewContext(ctx, logger.WithSink(hidingSink{logger.GetSink(), secrets}))
}

// hidingSink is a log sink that hides secrets.
type hidingSink struct {
	logr.LogSink
	secrets map[string]string
}

// Info logs the message without secrets.
func (h hidingSink) Info(level int, message string, keysAndValues ...any) {
	h.LogSink.Info(level, Hide(message, h.secrets), h.values(keysAndValues)...)
}

// Error logs the error without secrets.
func (h hidingSink) Error(err error, message string, keysAndValues ...any) {
	if err != nil {
		err = errors.New(Hide(err.Error(), h.secrets))
	}
	h.LogSink.Error(err, Hide(message, h.secrets), h.values(keysAndValues)...)
}

// WithValues hides secrets in the added values too.
func (h hidingSink) WithValues(keysAndValues ...any) logr.LogSink {
	return hidingSink{h.LogSink.WithValues(h.values(keysAndValues)...), h.secrets}
}

// WithName hides secrets in the named logger too.
func (h hidingSink) WithName(name string) logr.LogSink {
	return hidingSink{h.LogSink.WithName(name), h.secrets}
}

func (h hidingSink) values(given []any) []any {
	shown := make([]any, len(given))
	for i, value := range given {
		switch value := value.(type) {
		case string:
			shown[i] = Hide(value, h.secrets)
		case error:
			shown[i] = Hide(value.Error(), h.secrets)
		case fmt.Stringer: // a request; its volume handle may contain a secret
			shown[i] = Hide(value.String(), h.secrets)
		default:
			shown[i] = value
		}
	}
	return shown
}
